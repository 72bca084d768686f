// The gradient of a planned run's loss, and how much of it reaches the first layer.
#pragma once

#include <optional>
#include <vector>

#include "plumb/model/model.h"
#include "plumb/task/task.h"

namespace plumb::check {

/// The gradient of the mean loss over the batches, one tensor per parameter; without dropout. `loss`: receives their
/// mean negative log-likelihood per label.
std::vector<Tensor> gradient_of(const Task& task, double label_smoothing, Model& model,
                                const std::vector<Batch>& batches, double& loss);

/// The norm of the gradient of a stack's first layer divided by that of the last layer before the output; of two stacks
/// the smaller one, since a decoder may learn whose encoder does not. Near 0, nothing that the input tells can be
/// learned: Post-LN at too high a rate makes all tokens the same, and their differences are what the gradient needs to
/// pass through attention. Empty for fewer than 2 layers.
std::optional<double> gradient_at_input(const Parameters& parameters, const std::vector<Tensor>& gradient);

}  // namespace plumb::check
