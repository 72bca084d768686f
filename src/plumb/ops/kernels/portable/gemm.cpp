// Matrix products by ATen, where oneDNN is left out.
#include "plumb/ops/kernels/gemm.h"

#include <type_traits>

#include "plumb/ops/torch.h"

namespace plumb::kernels {
namespace {

/// A matrix as stored, seen by ATen; what is not float32 becomes a float32 copy.
template <typename T>
Tensor matrix(const T* data, int64_t rows, int64_t columns, int64_t stride) {
  constexpr at::ScalarType kType = std::is_same_v<T, float> ? at::kFloat : at::kBFloat16;
  return at::from_blob(const_cast<T*>(data), {rows, columns}, {stride, 1}, kType).to(at::kFloat);
}

}  // namespace

template <typename T>
void gemm(const Product& p, const T* a, const T* b, float* c) {
  const at::AutoDispatchBelowADInplaceOrView no_graph;
  const Tensor left = p.transpose_a ? matrix(a, p.k, p.m, p.lda).t() : matrix(a, p.m, p.k, p.lda);
  const Tensor right = p.transpose_b ? matrix(b, p.n, p.k, p.ldb).t() : matrix(b, p.k, p.n, p.ldb);
  Tensor out = matrix(c, p.m, p.n, p.ldc);
  at::addmm_out(out, out, left, right, p.accumulate ? 1 : 0, 1);  // factor 0: what stands in C does not count
  if (p.bias != nullptr) out.add_(at::from_blob(const_cast<float*>(p.bias), {p.n}, at::kFloat));
  if (p.relu) out.clamp_min_(0);
}

template void gemm(const Product&, const float*, const float*, float*);
template void gemm(const Product&, const Bfloat16*, const Bfloat16*, float*);

}  // namespace plumb::kernels
