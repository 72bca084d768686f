// The matrix product by ATen, where oneDNN is left out.
#include "plumb/ops/kernels/gemm.h"

#include "plumb/ops/torch.h"

namespace plumb::kernels {

void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
          const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  const at::AutoDispatchBelowADInplaceOrView no_graph;
  const auto matrix = [](const float* data, int64_t rows, int64_t columns, int64_t stride) {
    return at::from_blob(const_cast<float*>(data), {rows, columns}, {stride, 1}, at::kFloat);
  };
  const Tensor left = transpose_a ? matrix(a, k, m, lda).t() : matrix(a, m, k, lda);
  const Tensor right = transpose_b ? matrix(b, n, k, ldb).t() : matrix(b, k, n, ldb);
  Tensor out = matrix(c, m, n, ldc);
  at::addmm_out(out, out, left, right, beta, alpha);  // beta 0: what stands in C does not count, even if it is NaN
}

}  // namespace plumb::kernels
