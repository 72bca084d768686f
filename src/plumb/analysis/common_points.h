// The activations that several processes have measured, each on its own batches.
#pragma once

#include <vector>

#include "plumb/nn/layer_id.h"
#include "plumb/parallel/group.h"

namespace plumb {

/// The points of a forward pass, in order, agreed on by all processes of a group: those that this process has seen
/// (`own`) or, if it had no batch, those of the others. Throws Error if processes have seen different ones.
std::vector<ActivationPoint> common_points(const std::vector<ActivationPoint>& own, const Group& group);

}  // namespace plumb
