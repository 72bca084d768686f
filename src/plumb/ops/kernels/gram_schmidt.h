// The memory-bound pass of Lanczos' re-orthogonalization.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plumb::kernels {

/// Number of elements for which all vectors stay in the cache between their two uses.
constexpr int64_t kGramSchmidtBlock = 1024;

template <typename T>
struct GramSchmidtKernels {
  /// On elements [begin, end), at most kGramSchmidtBlock of them, of w and of `count` vectors v_k:
  ///   w ← w − Σ subtract_k·v_k (unless `subtract` is null), then sums_k += v_k·w (if `products`), then
  ///   sums_count += w·w,
  /// in float64.
  void (*subtract_and_multiply)(const T* const* vectors, size_t count, int64_t begin, int64_t end,
                                const double* subtract, bool products, T* w, double* sums);
};

/// Those of the instructions in use.
template <typename T>
const GramSchmidtKernels<T>& gram_schmidt();

}  // namespace plumb::kernels
