// What a process has of the state of a run, if the layers of its model are divided (nn/layer_division.h).
#pragma once

#include <vector>

#include "plumb/nn/layer_division.h"
#include "plumb/optim/optimizer.h"

namespace plumb {

/// Named values of parameters and buffers as tensors of a state.
std::vector<StateTensor> state_of(const NamedTensors& values, const Parameters& parameters);

/// This rank's shards of tensors of parameters, or of an optimizer that acts by element (Optimizer::state_tensors).
/// Tensors that are not divided are returned as they are. `parameters`: of the model.
NamedTensors shards_of(const std::vector<StateTensor>& full, const Parameters& parameters,
                       const LayerDivision& division);

}  // namespace plumb
