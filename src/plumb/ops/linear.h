// Matrix products: one primitive that differentiates into itself, and the linear layer made of it.
#pragma once

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// op(a)·op(b) for matrices, op transposing where asked. Differentiable any number of times:
/// for c = a·b, ∂a = ∂c·bᵀ and ∂b = aᵀ·∂c, products again. float32 goes to oneDNN, float64 to ATen.
Tensor matrix_product(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);

/// The same without a graph; `accumulate_into`, where defined, is added to and returned.
Tensor gemm(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false,
            const Tensor& accumulate_into = {});

/// Σ over the rows of x: (rows, width) → (width). Differentiable any number of times.
Tensor column_sums(const Tensor& x);

enum class Activation { none, relu };

/// x·Wᵀ + b, then the activation. x: (tokens, in); weight: (out, in); bias: (out) or undefined → (tokens, out).
/// Backward: with dz = dy∘[y > 0], dx = dz·W, dW = dzᵀ·x, db = Σ dz.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation = Activation::none);

}  // namespace plumb::ops
