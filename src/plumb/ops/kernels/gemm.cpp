#include "plumb/ops/kernels/gemm.h"

#include <dnnl.h>
#include <fmt/format.h>

#include "plumb/base/error.h"

namespace plumb::kernels {

void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
          const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  const dnnl_status_t status =
      dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  if (status != dnnl_success) {
    throw Error(fmt::format("oneDNN refused a matrix product of ({}, {}) by ({}, {})", m, k, k, n));
  }
}

}  // namespace plumb::kernels
