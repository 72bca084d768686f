// How the learning rates of a run follow from its model.
#pragma once

#include <vector>

#include "plumb/model/model.h"
#include "plumb/optim/groups.h"
#include "plumb/run/config.h"

namespace plumb {

/// The settings of each parameter of a model that is trained so: those of [[train.groups]], whose learning rates are
/// multiplied by what train.parametrization says. Throws Error as the function of groups does and, with µP, on models
/// and optimizers that it is not made for: a shared embedding, since the output matrix needs another learning rate; a
/// factor of the embeddings other than √d_model; an initialization other than "mup"; an optimizer other than Adam and
/// AdamW; and without train.base_width.
std::vector<ParameterSettings> parameter_settings(const Model& model, const TrainConfig& config);

}  // namespace plumb
