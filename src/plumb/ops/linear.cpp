#include "plumb/ops/linear.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plumb/base/error.h"
#include "plumb/ops/device.h"
#include "plumb/ops/fallback.h"
#include "plumb/ops/implementations.h"
#include "plumb/ops/precision.h"

namespace plumb::ops {
namespace {

/// dy where y > 0.
Tensor relu_gradient(const Tensor& dy, const Tensor& y) {
  static constexpr Operation kReluGradient("gradient of ReLU", PLUMB_FUSED(relu_gradient), &reference::relu_gradient);
  return kReluGradient(path_of(y), dy, y);
}

/// y = x·Wᵀ + b, then ReLU or nothing. If `rounded`, the operands of all products are rounded to bfloat16:
///   y = round(x)·round(W)ᵀ + b;  dx = round(dz)·round(W), dW = round(dz)ᵀ·round(x), db = Σ dz with dz = dy∘[y > 0].
class Linear : public torch::autograd::Function<Linear> {
 public:
  static Tensor forward(AutogradContext* ctx, const Tensor& x_in, const Tensor& weight_in,
                        const c10::optional<Tensor>& bias, bool relu, bool rounded) {
    const Tensor x = rounded ? to_bfloat16(x_in) : x_in;
    const Tensor weight = rounded ? to_bfloat16(weight_in) : weight_in;
    Tensor y = gemm(x, weight, {.transpose_b = true, .bias = bias.value_or(Tensor()), .relu = relu});
    // y is saved detached, because only its sign is used.
    ctx->save_for_backward({x, weight, relu ? y.detach() : Tensor()});
    ctx->saved_data["biased"] = bias.has_value();
    ctx->saved_data["rounded"] = rounded;
    return y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad) {
    const bool rounded = ctx->saved_data["rounded"].toBool();
    if (rounded) refuse_second_derivatives();
    const auto saved = ctx->get_saved_variables();
    const Tensor dz = saved[2].defined() ? relu_gradient(grad[0], saved[2]) : grad[0];
    const Tensor factor = rounded ? to_bfloat16(dz) : dz;
    const auto product = [&](const Tensor& other, bool transposed) {
      return rounded ? gemm(factor, other, {.transpose_a = transposed}) : matrix_product(factor, other, transposed);
    };
    Tensor dx;
    Tensor dw;
    if (ctx->needs_input_grad(0)) dx = product(saved[1], false);
    if (ctx->needs_input_grad(1)) dw = product(saved[0], true);
    const bool shifted = ctx->saved_data["biased"].toBool() && ctx->needs_input_grad(2);
    return {dx, dw, shifted ? column_sums(dz) : Tensor(), Tensor(), Tensor()};
  }
};

/// linear(), composed of the operations of this file, each on its own path.
Tensor linear_by_products(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  return Linear::apply(x, weight, if_defined(bias), activation == Activation::relu, /*rounded=*/false);
}

/// Throws Error unless the operands fit and the other tensors fit the product.
void require_fit(const char* operation, const Tensor& a, const Tensor& b, const GemmOptions& options) {
  const Tensor &bias = options.bias, &sum = options.accumulate_into;
  bool fits = a.dim() == 2 && b.dim() == 2 && a.scalar_type() == b.scalar_type();
  if (fits) {
    const int64_t rows = a.size(options.transpose_a ? 1 : 0), columns = b.size(options.transpose_b ? 0 : 1);
    fits = a.size(options.transpose_a ? 0 : 1) == b.size(options.transpose_b ? 1 : 0) &&
           (!bias.defined() || (bias.dim() == 1 && bias.size(0) == columns)) &&
           (!sum.defined() || (sum.dim() == 2 && sum.size(0) == rows && sum.size(1) == columns));
  }
  if (fits) return;
  std::string text;
  for (const Tensor& tensor : {a, b, bias, sum}) {
    if (tensor.defined())
      text += fmt::format("{}({}) of {}", text.empty() ? "" : ", ", fmt::join(tensor.sizes().vec(), ", "),
                          at::toString(tensor.scalar_type()));
  }
  throw Error(fmt::format("{}: these tensors do not fit: {}{}{}", operation, text,
                          options.transpose_a ? ", the first one transposed" : "",
                          options.transpose_b ? ", the second one transposed" : ""));
}

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
  require_fit("matrix product", a, b, options);
  if (const Tensor& sum = options.accumulate_into; sum.defined() && sum.size(1) > 1 && sum.stride(1) != 1)
    throw Error("a matrix product can only be added to a matrix whose rows are contiguous");
  static constexpr Operation kGemm("matrix product", PLUMB_FUSED(gemm), &reference::gemm, PLUMB_GPU(gemm));
  return kGemm(product_path(a, b), a, b, options);
}

Tensor symmetric_product(const Tensor& a, const Tensor& b, const SymmetricOptions& options) {
  require_one_device("symmetric product", a, b, options.plus);
  if (a.sizes() != b.sizes()) throw Error("symmetric product: the operands have different shapes");
  require_fit("symmetric product", a, b, {.transpose_b = true, .accumulate_into = options.plus});
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
  return Linear::apply(x, weight, if_defined(bias), activation == Activation::relu, /*rounded=*/true);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  require_one_device("linear layer", x, weight, bias);
  if (MatrixPrecision* packing = packing_for(x)) {
    return packing->packed(weight)(x, bias, activation == Activation::relu);
  }
  if (rounds_to_bfloat16(x)) return rounded_linear(x, weight, bias, activation);
  static constexpr Operation kLinear("linear layer", &linear_by_products, &reference::linear);
  return kLinear(path_of(x), x, weight, bias, activation);
}

}  // namespace plumb::ops
