// The models that commands use: runs and checkpoints, and Hugging Face folders in their original form.
#pragma once

#include <memory>
#include <string>

#include "plumb/base/json.h"
#include "plumb/model/model.h"
#include "plumb/train/config.h"
#include "plumb/train/run.h"

namespace plumb::app {

/// The help text of an argument that names a model.
inline constexpr const char* kModelHelp =
    "A run directory (its latest checkpoint), a checkpoint in one, or a folder of a Hugging Face model";

struct TrainedModel {
  RunAndCheckpoint place;  // for a Hugging Face model, both are its folder
  RunConfig config;
  std::unique_ptr<Model> model;
};

/// Reads the model at a path given by the user: a run directory (its latest checkpoint), a checkpoint in one, or a
/// folder with config.json and safetensors (interop/import.h). Throws Error if it is anything else, and as `load_model`
/// and `read_model_folder` do.
TrainedModel open_trained_model(const std::string& name);

/// SHA-256, by name, of the files that the model's answers depend on: the weights and, for an imported model or a
/// Hugging Face folder, the configuration and the tokenizer.
Json model_digests(const RunAndCheckpoint& place);

}  // namespace plumb::app
