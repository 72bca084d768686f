#include "plumb/ops/linear.h"

#include "plumb/base/error.h"
#include "plumb/ops/device.h"
#include "plumb/ops/fallback.h"
#include "plumb/ops/implementations.h"
#include "plumb/ops/precision.h"

namespace plumb::ops {
namespace {

/// y = round(x)·round(W)ᵀ + b, and with dz = dy∘[y > 0]: dx = round(dz)·round(W), dW = round(dz)ᵀ·round(x), db = Σ dz.
class RoundedLinear : public torch::autograd::Function<RoundedLinear> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& x_in, const Tensor& weight_in,
                        const c10::optional<Tensor>& bias, bool relu) {
    const Tensor x = to_bfloat16(x_in);
    const Tensor weight = to_bfloat16(weight_in);
    Tensor y = gemm(x, weight, {.transpose_b = true, .bias = bias.value_or(Tensor()), .relu = relu});
    ctx->save_for_backward({x, weight, relu ? y.detach() : Tensor()});
    ctx->saved_data["biased"] = bias.has_value();
    return y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    if (at::GradMode::is_enabled()) {
      throw Error("second derivatives are not available in bfloat16", "use float32 for curvature");
    }
    const auto saved = ctx->get_saved_variables();
    const Tensor dz = saved[2].defined() ? at::threshold_backward(grad[0], saved[2], 0) : grad[0];
    const Tensor rounded = to_bfloat16(dz);
    Tensor dx;
    Tensor dw;
    if (ctx->needs_input_grad(0)) dx = gemm(rounded, saved[1]);
    if (ctx->needs_input_grad(1)) dw = gemm(rounded, saved[0], {.transpose_a = true});
    const bool shifted = ctx->saved_data["biased"].toBool() && ctx->needs_input_grad(2);
    return {dx, dw, shifted ? column_sums(dz) : Tensor(), Tensor()};
  }
};

/// The path of a product; notes a fallback if the kernels do not support its type.
Path product_path(const Tensor& a, const Tensor& b) {
  const at::ScalarType type = a.scalar_type();
  if (!kernels_serve(a.device())) {
    const bool rounded = type == at::kBFloat16 && b.scalar_type() == at::kBFloat16;
    return rounded && gpu_serves(a) ? Path::gpu : Path::reference;
  }
  if (type == at::kDouble || a.numel() == 0 || b.numel() == 0) return Path::reference;
  if (type == at::kFloat || type == at::kBFloat16) return Path::kernels;
  note_fallback("matrix product");
  return Path::reference;
}

}  // namespace

Tensor gemm(const Tensor& a, const Tensor& b, const GemmOptions& options) {
  require_one_device("matrix product", a, b, options.accumulate_into, options.bias);
  static constexpr Operation kGemm("matrix product", PLUMB_FUSED(gemm), &reference::gemm, PLUMB_GPU(gemm));
  return kGemm(product_path(a, b), a, b, options);
}

Tensor symmetric_product(const Tensor& a, const Tensor& b, const SymmetricOptions& options) {
  require_one_device("symmetric product", a, b, options.plus);
  static constexpr Operation kSymmetricProduct("symmetric product", PLUMB_FUSED(symmetric_product),
                                               &reference::symmetric_product);
  const at::NoGradGuard no_graph;
  return kSymmetricProduct(product_path(a, b), a, b, options);
}

Tensor matrix_product(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  require_one_device("matrix product", a, b);
  static constexpr Operation kMatrixProduct("matrix product", PLUMB_FUSED(matrix_product), &reference::matrix_product);
  return kMatrixProduct(path_of(a), a, b, transpose_a, transpose_b);
}

Tensor column_sums(const Tensor& x) {
  static constexpr Operation kColumnSums("sums of columns", PLUMB_FUSED(column_sums), &reference::column_sums);
  return kColumnSums(path_of(x), x);
}

Tensor rounded_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  return RoundedLinear::apply(x, weight, if_defined(bias), activation == Activation::relu);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  require_one_device("linear layer", x, weight, bias);
  if (MatrixPrecision* packing = packing_for(x)) {
    return packing->packed(weight)(x, bias, activation == Activation::relu);
  }
  if (rounds_to_bfloat16(x)) return rounded_linear(x, weight, bias, activation);
  static constexpr Operation kLinear("linear layer", PLUMB_FUSED(linear), &reference::linear);
  return kLinear(path_of(x), x, weight, bias, activation);
}

}  // namespace plumb::ops
