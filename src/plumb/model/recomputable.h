// Which models can compute the activations of their layers again in the backward pass (ForwardContext::recompute).
#pragma once

#include "plumb/model/config.h"

namespace plumb {

/// Throws Error unless all layers of this model can be computed twice with the same result: recurrent layers keep their
/// activations, and PowerNorm reads running averages that its pass updates.
void require_recomputable(const ModelConfig& config);

}  // namespace plumb
