// The function to differentiate: how the loss of a batch is computed. A task may supply its own criterion.
#pragma once

#include <functional>

#include "plumb/model/model.h"

namespace plumb {

/// The loss of a batch with its graph.
using LossFunction = std::function<Loss(Model&, const Batch&, const LossOptions&, ForwardContext&)>;

/// Model::loss.
inline Loss model_loss(Model& model, const Batch& batch, const LossOptions& options, ForwardContext& context) {
  return model.loss(batch, options, context);
}

}  // namespace plumb
