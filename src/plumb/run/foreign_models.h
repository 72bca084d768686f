// Folders with models of other libraries, which commands open and new runs start from as from an imported model. The
// folder interop registers them: train knows nothing of their formats.
#pragma once

#include <filesystem>

#include "plumb/base/json.h"
#include "plumb/base/registry.h"
#include "plumb/io/safetensors.h"
#include "plumb/run/config.h"

namespace plumb {

struct ForeignModel {
  /// Whether a path is such a folder. Does not throw.
  bool (*at)(const std::filesystem::path& path);
  /// The model and its task, as an import stores them. Throws Error, naming what is not supported.
  RunConfig (*config)(const std::filesystem::path& folder);
  /// The weights, under Plumb's names. Throws Error if they do not fit the model.
  NamedTensors (*weights)(const std::filesystem::path& folder);
  /// The tokenizer's marks, as data prepared with it have (tokenizer_marks); empty if the folder has no tokenizer.
  Json (*tokenizer)(const std::filesystem::path& folder);
};

/// By the name of the library.
Registry<ForeignModel>& foreign_models();

/// The kind of model in a folder; null if it is not a model of another library.
const ForeignModel* foreign_model_at(const std::filesystem::path& path);

}  // namespace plumb
