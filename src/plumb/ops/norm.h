// Row normalization as an operation: LayerNorm (Ba et al. 2016, arXiv 1607.06450), RMSNorm (arXiv 1910.07467).
#pragma once

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// y = (x − μ)/√(mean((x − μ)²) + eps)·γ + β over each row; x: (tokens, width), gamma, beta: (width). Throws Error if
/// shapes do not match, as does the next.
Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps);

/// y = x/√(mean(x²) + eps)·γ over each row.
Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps);

}  // namespace plumb::ops
