// The gradient of the loss at single positions.
#pragma once

#include <string>
#include <vector>

#include "plumb/model/model.h"

namespace plumb {

/// ‖∂L_t/∂W‖_F of the parameter of this name, by batch: L_t is the loss at one label of the batch, of those that
/// count, whose place varies from batch to batch. No dropout. Throws Error, with the closest name as a hint, if the
/// model has no such parameter.
std::vector<double> measure_token_gradients(Model& model, const std::vector<Batch>& batches,
                                            const std::string& parameter);

}  // namespace plumb
