// Initializes a run with the weights of another run.
#pragma once

#include <filesystem>
#include <string>

#include "plumb/data/directory.h"
#include "plumb/model/model.h"

namespace plumb {

/// Copies the weights of a checkpoint into an initialized model. A classifier keeps its own head (`is_of_head`) and
/// ignores the checkpoint's, unless that classifies the same labels by the same pooling. The model keeps its own
/// adapters; those of the checkpoint are merged into their matrices. All other parameters must match. If the
/// checkpoint's run was trained with another vocabulary than that of `data`, the model's training data, rows of
/// embeddings and output layer are matched by piece, and new pieces get the mean of the old rows. Returns a message
/// about head and vocabulary, or an empty string if there is nothing to say. Throws Error that names the first
/// parameter that is missing, unexpected, or of another shape (with both shapes), if the checkpoint's state.json lists
/// other weights, and if the old vocabulary cannot be found where the run had it.
std::string load_initial_weights(Model& model, const std::filesystem::path& checkpoint, const DataDirectory& data);

/// Whether a run, not a folder with a model of another library, was trained on the labels of these data, in their
/// order.
bool has_labels_of(const std::filesystem::path& run, const DataDirectory& data);

/// Whether a parameter belongs to the head: the output layer, its transform or the pooler.
bool is_of_head(const std::string& parameter);

}  // namespace plumb
