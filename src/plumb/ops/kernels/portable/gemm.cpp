// Matrix products by ATen, where oneDNN is left out.
#include "plumb/ops/kernels/gemm.h"

#include <type_traits>
#include <vector>

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

template <typename T>
struct PackedWeight<T>::Content {
  std::vector<T> rows;
};

template <typename T>
PackedWeight<T>::PackedWeight(const T* weight, int64_t n, int64_t k)
    : n_(n), k_(k), content_(new Content{std::vector<T>(weight, weight + n * k)}) {}
template class PackedWeight<float>;
template class PackedWeight<Bfloat16>;
template class PackedWeight<int8_t>;

template <typename T>
void gemm(int64_t m, const T* a, const PackedWeight<T>& weight, const float* bias, bool relu, float* c) {
  const int64_t n = weight.n();
  const int64_t k = weight.k();
  gemm<T>({.transpose_b = true, .m = m, .n = n, .k = k, .lda = k, .ldb = k, .ldc = n, .relu = relu, .bias = bias}, a,
          weight.content().rows.data(), c);
}

template void gemm(int64_t, const float*, const PackedWeight<float>&, const float*, bool, float*);
template void gemm(int64_t, const Bfloat16*, const PackedWeight<Bfloat16>&, const float*, bool, float*);

void gemm(int64_t m, const int8_t* a, const PackedWeight<int8_t>& weight, int32_t* c) {
  const at::AutoDispatchBelowADInplaceOrView no_graph;
  const auto exact = [](const int8_t* data, int64_t rows, int64_t columns) {
    return at::from_blob(const_cast<int8_t*>(data), {rows, columns}, at::kChar).to(at::kDouble);
  };
  const Tensor product =
      at::mm(exact(a, m, weight.k()), exact(weight.content().rows.data(), weight.n(), weight.k()).t());
  at::from_blob(c, {m, weight.n()}, at::kInt).copy_(product);
}

}  // namespace plumb::kernels
