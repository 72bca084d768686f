// The gradient of a run's loss by layer, and how much of it reaches the first layer.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "plumb/nn/layer_id.h"
#include "plumb/nn/parameters.h"

namespace plumb::check {

/// The squared norm of each layer's gradient, the decoder's layers after the encoder's.
std::map<LayerId, double> gradient_by_layer(const Parameters& parameters, const std::vector<Tensor>& gradient);

/// The norm of the gradient of a stack's first layer divided by that of the last layer before the output; of two stacks
/// the smaller one, since a decoder may learn whose encoder does not. Near 0, nothing that the input tells can be
/// learned: Post-LN at too high a rate makes all tokens the same, and their differences are what the gradient needs to
/// pass through attention. Empty for fewer than 2 layers.
std::optional<double> gradient_at_input(const Parameters& parameters, const std::vector<Tensor>& gradient);

}  // namespace plumb::check
