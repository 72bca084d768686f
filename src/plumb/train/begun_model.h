// The model that a run begins with.
#pragma once

#include <memory>

#include "plumb/model/model.h"
#include "plumb/run/config.h"

namespace plumb {

/// The model of a run, with all parameters 0. If several processes divide it and none needs all of it to begin, its
/// parameters have no memory: Trainer::join fills this process's shards. All of it is needed for given initial weights,
/// on GPUs, and for initializations that profile or constrain the model. In a group of several processes, all call it
/// with the same configuration.
std::unique_ptr<Model> make_begun_model(const RunConfig& config);

}  // namespace plumb
