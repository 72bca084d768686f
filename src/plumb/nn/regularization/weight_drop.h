// Weight drop: DropConnect of the recurrent weights, Merity et al. 2018, "Regularizing and optimizing LSTM language
// models", arXiv 1708.02182, section 2; DropConnect: Wan et al. 2013.
//   U' = M∘U/(1 − p), M of independent elements that are 1 with probability 1 − p.
// One mask for all positions and sequences of a step.
#pragma once

#include "plumb/ops/dropout.h"

namespace plumb {

/// U': the weight with elements dropped. The key must have no runs: the mask is not tied to rows of the batch.
Tensor weight_drop(const Tensor& weight, double p, const ops::DropoutKey& key);

}  // namespace plumb
