// Weights that a run begins with instead of random ones: those of another run.
#pragma once

#include <filesystem>

#include "plumb/model/model.h"

namespace plumb {

/// Copies the weights of a checkpoint into a model that has been initialized. A classifier keeps its own output layer
/// and pooler, and ignores those of the checkpoint (with their transform); everything else must be there. Throws Error
/// that names the first parameter that is missing, unexpected, or of another shape, with both shapes.
void load_initial_weights(Model& model, const std::filesystem::path& checkpoint);

/// Whether a parameter belongs to what follows the layers: the output layer, its transform or the pooler.
bool is_of_head(const std::string& parameter);

}  // namespace plumb
