// Matrix products by oneDNN, which keeps to OpenMP's pool and to the best instructions of the machine whatever the
// environment says of BLAS.
#pragma once

#include <cstdint>

#include "plumb/ops/kernels/bfloat16.h"

namespace plumb::kernels {

/// C = op(A) · op(B) [+ C] [+ bias] [then max(·, 0)], row-major; op transposes where asked. op(A): (m, k), op(B):
/// (k, n), C: (m, n). Leading dimensions are the row strides of A, B and C as stored.
struct Product {
  bool transpose_a = false;
  bool transpose_b = false;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t lda = 0;
  int64_t ldb = 0;
  int64_t ldc = 0;
  bool accumulate = false;      // add to what C holds
  bool relu = false;            // not together with accumulate
  const float* bias = nullptr;  // (n), added to every row
};

/// T: float or Bfloat16; sums are formed in float32 either way. What oneDNN compiles for a shape is kept for the next
/// product of that shape. Throws Error where the processor has no such product.
template <typename T>
void gemm(const Product& product, const T* a, const T* b, float* c);

}  // namespace plumb::kernels
