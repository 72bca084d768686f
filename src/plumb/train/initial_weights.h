// Weights that a run begins with instead of random ones: those of another run.
#pragma once

#include <filesystem>
#include <string>

#include "plumb/data/directory.h"
#include "plumb/model/model.h"

namespace plumb {

/// Copies the weights of a checkpoint into a model that has been initialized. A classifier keeps its own output layer
/// and pooler, and ignores those of the checkpoint (with their transform); a model keeps its own adapters, and those of
/// the checkpoint are merged into their matrices; everything else must be there. If the run
/// of the checkpoint was trained with another vocabulary than that of `data`, which the model is to be trained on,
/// embeddings and the output layer are moved by piece, and pieces that are new get the mean over all; then a line about
/// it is returned. Throws Error that names the first parameter that is missing, unexpected, or of another shape, with
/// both shapes, or if the former vocabulary is no longer where the run had it.
std::string load_initial_weights(Model& model, const std::filesystem::path& checkpoint, const DataDirectory& data);

/// Whether a parameter belongs to what follows the layers: the output layer, its transform or the pooler.
bool is_of_head(const std::string& parameter);

}  // namespace plumb
