// Matrix products: a primitive whose derivatives are again products, and the linear layer built from it.
#pragma once

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// op(a)·op(b) for matrices, where op optionally transposes. Differentiable to any order: for c = a·b, ∂a = ∂c·bᵀ and
/// ∂b = aᵀ·∂c are products again.
Tensor matrix_product(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);

/// The same without a graph, with operations fused into the product. In float32 for operands of float32 or bfloat16,
/// and in float64 for those of float64.
struct GemmOptions {
  bool transpose_a = false;
  bool transpose_b = false;
  Tensor accumulate_into = {};  // if defined, the product is added to it, and it is returned
  Tensor bias = {};             // (columns), added to every row
  bool relu = false;
};
Tensor gemm(const Tensor& a, const Tensor& b, const GemmOptions& options = {});

/// Σ over the rows of x: (rows, width) → (width). Differentiable to any order.
Tensor column_sums(const Tensor& x);

enum class Activation { none, relu };

/// x·Wᵀ + b, then the activation. x: (tokens, in); weight: (out, in); bias: (out) or undefined → (tokens, out).
/// Backward: with dz = dy∘[y > 0], dx = dz·W, dW = dzᵀ·x, db = Σ dz. In the precision set by a PrecisionGuard.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation = Activation::none);

/// The same for float32, with the operands of all products rounded to bfloat16. Its second derivative throws Error.
Tensor rounded_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation);

}  // namespace plumb::ops
