// The model that a run begins with.
#pragma once

#include <memory>

#include "plumb/model/model.h"
#include "plumb/run/config.h"

namespace plumb {

/// The model of a run, with all parameters 0. If several processes keep pieces of it and none needs all of it to begin,
/// its parameters have no memory: Trainer::join fills these pieces, layer by layer. A process needs all of it for given
/// initial weights, if tensor parallelism divides the layers too, for recurrent layers, and if the initialization
/// profiles the model. In a group of several processes, all call it with the same configuration.
std::unique_ptr<Model> make_begun_model(const RunConfig& config);

}  // namespace plumb
