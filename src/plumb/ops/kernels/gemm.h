// Single-precision matrix product by oneDNN, which keeps to OpenMP's pool and to the best instructions of the machine
// whatever the environment says of BLAS.
#pragma once

#include <cstdint>

namespace plumb::kernels {

/// C = alpha · op(A) · op(B) + beta · C, row-major; op transposes where asked. op(A): (m, k), op(B): (k, n), C: (m, n).
/// Leading dimensions are the row strides of A, B and C as stored. Throws Error if oneDNN refuses.
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
          const float* b, int64_t ldb, float beta, float* c, int64_t ldc);

}  // namespace plumb::kernels
