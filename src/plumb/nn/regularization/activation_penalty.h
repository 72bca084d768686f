// Activation regularization (AR): Merity et al. 2017, "Revisiting activation regularization for language RNNs",
// arXiv 1708.01009.
//   AR = mean of h², over all positions and features; the loss becomes loss + α·AR.
// h are the outputs of the last layer after dropout, and the mean follows the authors' code; the paper has α·‖m∘h_t‖₂.
#pragma once

#include "plumb/ops/torch.h"

namespace plumb {

/// AR of h, (tokens, width): a scalar, 0 without tokens.
Tensor activation_penalty(const Tensor& h);

}  // namespace plumb
