// Element-wise passes: ReLU, its gradient, column sums and the other half of symmetric matrices.
#pragma once

#include <cstdint>

#include "plumb/ops/kernels/bfloat16.h"

namespace plumb::kernels {

template <typename T>
struct ElementwiseKernels {
  /// x = max(x, 0) for n elements; NaN stays NaN.
  void (*rectify)(T* x, int64_t n);
  /// dx = 0 where y ≤ 0, else dy (also where y is NaN), for elements [begin, end).
  void (*relu_backward)(const T* dy, const T* y, T* dx, int64_t begin, int64_t end);
  /// sums[c] += Σ over rows [begin, end) of x[row, c].
  void (*column_sums)(const T* x, int64_t width, int64_t begin, int64_t end, T* sums);
};

/// Those of the instructions in use.
template <typename T>
const ElementwiseKernels<T>& elementwise();

/// out[i] = x[i] in bfloat16, to nearest, ties to even; NaN stays NaN.
void round_to_bfloat16(const float* x, int64_t count, Bfloat16* out);

/// Completes C (n, n), of which the rows [begin, end) have been computed up to the diagonal: for these rows and j ≤ i,
///   C[i, j] = C[j, i] = scale·C[i, j] + plus_scale·plus[i, j] + (diagonal if i = j).
/// `plus` (n, n) may be null. `begin` is a multiple of kCompletedRows, and end − begin is at most that.
struct Completion {
  float scale, plus_scale, diagonal;
};
inline constexpr int64_t kCompletedRows = 16;
void complete_symmetric(const Completion& completion, const float* plus, float* c, int64_t n, int64_t begin,
                        int64_t end);

}  // namespace plumb::kernels
