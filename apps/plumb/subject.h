// The subject of probe and spectrum: a model, initialized or with weights, and the batches to measure it on.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plumb/analysis/divided_model.h"
#include "plumb/base/json.h"
#include "plumb/io/safetensors.h"
#include "plumb/parallel/group.h"

namespace plumb::app {

struct SubjectArguments {
  std::string run;     // a run directory: its configuration, data and latest checkpoint; or a Hugging Face folder
  std::string config;  // otherwise a TOML file with a [model] section; or neither, but keys in
  std::vector<std::string> set;
  std::string weights;             // a safetensors file; empty: initialize
  bool at_initialization = false;  // ignore the run's checkpoint
  std::string batch;               // a JSON file with token ids; or
  std::string data;                // a data directory, with
  std::string split = "valid";
  int64_t pairs = 1000;  // number of examples from the start of the split; 0: all
  int64_t batch_tokens = 2048;
  std::string dtype = "float32";
};

struct Subject {
  ModelConfig config;
  std::optional<NamedTensors> weights;
  std::string weights_origin;
  std::vector<Batch> batches;
  at::ScalarType type = at::kFloat;

  /// The model with its weights, or initialized from `seed` if it has none, divided among the ranks of `layers`.
  [[nodiscard]] DividedModel make_model(uint64_t seed, const Group& layers) const;

  [[nodiscard]] int64_t examples() const;
  [[nodiscard]] int64_t target_tokens() const;

  /// Adds "model" (model, data, weights, element type) before the results of a measurement.
  [[nodiscard]] Json document(const Json& measured) const;
};

void add_subject_options(CLI::App& verb, SubjectArguments& arguments);

/// Throws UsageError if the options specify no model or no data, and Error if they cannot be read or do not fit
/// together.
Subject open_subject(const SubjectArguments& arguments);

/// Facts that must agree between processes that measure a subject together: the model's configuration, and checksums of
/// its weights and of the batches.
Facts facts_of(const Subject& subject);

}  // namespace plumb::app
