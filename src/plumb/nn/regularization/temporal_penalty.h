// Temporal activation regularization (TAR), or slowness: Merity et al. 2017, arXiv 1708.01009.
//   TAR = mean of (h_t − h_{t−1})², over all features and all positions that have one before them in their sequence;
//   the loss becomes loss + β·TAR.
// h are the outputs of the last layer before dropout. The mean follows the authors' code; the paper has
// β·‖h_t − h_{t+1}‖₂.
#pragma once

#include "plumb/base/ragged.h"
#include "plumb/ops/torch.h"

namespace plumb {

/// TAR of h, (tokens, width): a scalar, 0 if no sequence has two positions.
Tensor temporal_penalty(const Tensor& h, const Ragged& layout);

}  // namespace plumb
