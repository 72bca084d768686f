#include "plumb/ops/implementations.h"

namespace plumb::ops::reference {

Tensor matrix_product(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  return at::mm(transpose_a ? a.t() : a, transpose_b ? b.t() : b);
}

Tensor gemm(const Tensor& a, const Tensor& b, const GemmOptions& options) {
  const at::NoGradGuard no_graph;
  // A product of two bfloat16 numbers is exact in float32.
  const auto wide = [](const Tensor& x) { return x.scalar_type() == at::kBFloat16 ? x.to(at::kFloat) : x; };
  return add_bias_and_activation(matrix_product(wide(a), wide(b), options.transpose_a, options.transpose_b), options);
}

Tensor symmetric_product(const Tensor& a, const Tensor& b, const SymmetricOptions& options) {
  Tensor c = ops::gemm(a, b, {.transpose_b = true}).mul_(options.scale);
  if (options.plus.defined()) c.add_(options.plus, options.plus_scale);
  c.diagonal().add_(options.diagonal);
  return c;
}

Tensor add_bias_and_activation(const Tensor& product, const GemmOptions& options) {
  Tensor c = product;
  if (options.accumulate_into.defined()) c = options.accumulate_into.add_(c);
  if (options.bias.defined()) c.add_(options.bias);
  return options.relu ? c.relu_() : c;
}

Tensor column_sums(const Tensor& x) { return x.sum(0); }

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  const Tensor y = at::linear(x, weight, if_defined(bias));
  return activation == Activation::relu ? at::relu(y) : y;
}

Tensor relu_gradient(const Tensor& dy, const Tensor& y) { return at::threshold_backward(dy, y, 0); }

}  // namespace plumb::ops::reference
