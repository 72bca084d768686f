// Smooth activations, element by element: x multiplied by a logistic function of it. Differentiable twice.
#pragma once

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// x·σ(x), Ramachandran et al. 2017, arXiv 1710.05941. Any shape.
Tensor silu(const Tensor& x);

/// x/2·(1 + tanh(u)) = x·σ(2u) with u = √(2/π)·(x + 0.044715·x³): GELU's approximation, Hendrycks & Gimpel 2016, arXiv
/// 1606.08415. Any shape.
Tensor gelu_tanh(const Tensor& x);

}  // namespace plumb::ops
