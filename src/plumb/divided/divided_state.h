// The state of a run whose model is divided among processes (nn/layer_division.h), as files contain it: of the whole
// model.
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

/// The reverse, on the division's first process; nothing on the others. Every process calls it. The tensors are copies.
NamedTensors full_of(const std::vector<StateTensor>& shards, const Parameters& parameters,
                     const LayerDivision& division);

}  // namespace plumb
