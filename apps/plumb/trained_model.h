// The models that commands use: of runs and checkpoints, and Hugging Face folders as they are on disk.
#pragma once

#include <memory>
#include <string>

#include "plumb/base/json.h"
#include "plumb/model/model.h"
#include "plumb/train/config.h"
#include "plumb/train/run.h"

namespace plumb::app {

/// What the help says of an argument that names such a model.
inline constexpr const char* kModelHelp =
    "A run directory (its latest checkpoint), a checkpoint in one, or a folder of a Hugging Face model";

struct TrainedModel {
  RunAndCheckpoint place;  // of a Hugging Face model, both are its folder, where its tokenizer is
  RunConfig config;
  std::unique_ptr<Model> model;
};

/// Reads the model at a path given by the user: a run directory (its latest checkpoint), a checkpoint in one, or a
/// folder with config.json and safetensors (interop/import.h). Throws Error if it is something else, or for the reasons
/// of `load_model` and `read_model_folder`.
TrainedModel open_trained_model(const std::string& name);

/// SHA-256 of the files that its answers depend on, by name: those with weights, and of an imported model or a Hugging
/// Face folder also the configuration and the tokenizer.
Json model_digests(const RunAndCheckpoint& place);

}  // namespace plumb::app
