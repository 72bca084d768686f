#include "plumb/ops/implementations.h"

#ifdef PLUMB_GPU_BUILT
namespace plumb::ops::gpu {

Tensor gemm(const Tensor& a, const Tensor& b, const GemmOptions& options) {
  const at::NoGradGuard no_graph;
  const Tensor product = at::mm(options.transpose_a ? a.t() : a, options.transpose_b ? b.t() : b, at::kFloat);
  return reference::add_bias_and_activation(product, options);
}

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps) {
  return at::layer_norm(x, {x.size(1)}, gamma, beta, eps);
}

Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps) { return at::rms_norm(x, {x.size(1)}, gamma, eps); }

}  // namespace plumb::ops::gpu
#endif
