// A model that somebody named: a run, a checkpoint in one, an imported model or a folder of a Hugging Face model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/model/capabilities.h"
#include "plumb/model/model.h"
#include "plumb/run/config.h"
#include "plumb/run/directory.h"

namespace plumb {

struct OpenedModel {
  RunAndCheckpoint place;  // for a Hugging Face model, both are its folder
  RunConfig config;
  std::unique_ptr<Model> model;
};

/// Reads the model at a path given by the user: a run directory (its latest checkpoint), a checkpoint in one, or a
/// folder with config.json and safetensors (interop/import.h). Throws Error if it is anything else, and as `load_model`
/// does.
OpenedModel open_model(const std::string& name);

/// The names of the labels of a run or a Hugging Face folder, in the order of its model's outputs: those of an imported
/// model's config.json; else those of the data that it was trained on. Empty if it was trained on data without labels,
/// or on data that an old run did not record and that are gone.
std::vector<std::string> labels_of(const std::filesystem::path& run);

/// The model's output for each label of some data. Throws Error, naming `data`, unless both have the same set of names.
std::vector<int64_t> outputs_of_labels(const std::vector<std::string>& of_model,
                                       const std::vector<std::string>& of_data, const std::string& data);

/// The most tokens that a language model reads at once: the number that its config.json states; else that of its
/// positions; else, as in lm-evaluation-harness, 2048.
int64_t context_length(const Generates& model, const std::filesystem::path& run);

/// SHA-256, by name, of the files that the model's answers depend on: the weights and, for an imported model or a
/// Hugging Face folder, the configuration and the tokenizer.
Json model_digests(const RunAndCheckpoint& place);

}  // namespace plumb
