// Matrix products: one primitive that differentiates into itself, and the linear layer made of it.
#pragma once

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// op(a)·op(b) for matrices, op transposing where asked. Differentiable any number of times:
/// for c = a·b, ∂a = ∂c·bᵀ and ∂b = aᵀ·∂c, products again.
Tensor matrix_product(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);

/// The same without a graph, with what may follow a product in the same pass. In float32 for operands of float32 or
/// bfloat16, in float64 for those of float64.
struct GemmOptions {
  bool transpose_a = false;
  bool transpose_b = false;
  Tensor accumulate_into = {};  // where defined, it is added to and returned
  Tensor bias = {};             // (columns), added to every row
  bool relu = false;
};
Tensor gemm(const Tensor& a, const Tensor& b, const GemmOptions& options = {});

/// Σ over the rows of x: (rows, width) → (width). Differentiable any number of times.
Tensor column_sums(const Tensor& x);

enum class Activation { none, relu };

/// x·Wᵀ + b, then the activation. x: (tokens, in); weight: (out, in); bias: (out) or undefined → (tokens, out).
/// Backward: with dz = dy∘[y > 0], dx = dz·W, dW = dzᵀ·x, db = Σ dz. In the precision that a PrecisionGuard names.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation = Activation::none);

/// The same for float32, with the operands of all products rounded to bfloat16. Its second derivative throws Error.
Tensor rounded_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation);

}  // namespace plumb::ops
