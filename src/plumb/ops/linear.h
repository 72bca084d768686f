// Matrix products: a primitive whose derivatives are again products, and the linear layer built from it.
#pragma once

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// op(a)·op(b) for matrices, where op optionally transposes. Differentiable to any order: for c = a·b, ∂a = ∂c·bᵀ and
/// ∂b = aᵀ·∂c are products again.
Tensor matrix_product(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);

/// The same without an autograd graph, with fused operations. The operands have one type; the result is float32 for
/// float32 or bfloat16, and float64 for float64. Throws Error if shapes or types do not match.
struct GemmOptions {
  bool transpose_a = false;
  bool transpose_b = false;
  Tensor accumulate_into = {};  // if defined, has contiguous rows; the product is added to it, and it is returned
  Tensor bias = {};             // (columns), added to every row
  bool relu = false;
};
Tensor gemm(const Tensor& a, const Tensor& b, const GemmOptions& options = {});

/// scale·a·bᵀ + plus_scale·plus + diagonal·I for a product that the caller knows to be symmetric, such as that of a
/// matrix with itself, or of two polynomials of one symmetric matrix. The CPU kernels compute half of a large product
/// and mirror it: their result is exactly symmetric, that of other devices and types up to rounding. Without an
/// autograd graph. a, b: (n, k), with types as for gemm(); plus: (n, n), symmetric and of the result's type, or
/// undefined. Throws Error if shapes or types do not match.
struct SymmetricOptions {
  double scale = 1;
  Tensor plus = {};
  double plus_scale = 1;
  double diagonal = 0;
};
Tensor symmetric_product(const Tensor& a, const Tensor& b, const SymmetricOptions& options = {});

/// The sum of the rows of x: (rows, width) → (width). Differentiable to any order.
Tensor column_sums(const Tensor& x);

enum class Activation { none, relu };

/// x·Wᵀ + b, then the activation. x: (tokens, in); weight: (out, in); bias: (out) or undefined → (tokens, out).
/// Backward: with dz = dy∘[y > 0] for ReLU, else dy: dx = dz·W, dW = dzᵀ·x, db = Σ dz. Uses the precision set by a
/// PrecisionGuard.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation = Activation::none);

/// The same for float32, with the operands of all products rounded to bfloat16. Second derivatives throw Error.
Tensor rounded_linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation);

}  // namespace plumb::ops
