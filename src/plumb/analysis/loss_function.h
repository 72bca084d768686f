// The function to differentiate: how the loss of a batch is computed. A task may supply its own criterion.
#pragma once

#include <functional>
#include <vector>

#include "plumb/model/model.h"
#include "plumb/task/task.h"

namespace plumb {

/// The loss of a batch with its graph.
using LossFunction = std::function<Loss(Model&, const Batch&, const LossOptions&, ForwardContext&)>;

/// Model::loss.
inline Loss model_loss(Model& model, const Batch& batch, const LossOptions& options, ForwardContext& context) {
  return model.loss(batch, options, context);
}

/// The loss of a task, which must outlive the function.
LossFunction loss_of(const Task& task);

/// The weight of all labels of the batches, by which a mean over them divides. Throws Error if there are none.
double total_weight(const std::vector<Batch>& batches);

}  // namespace plumb
