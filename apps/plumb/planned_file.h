// The common part of `plumb plan` and `plumb train --dry-run`: a configuration to plan for.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/plan/training.h"
#include "plumb/run/config.h"

namespace plumb::app {

/// A configuration to plan for, as given on the command line.
struct PlannedFile {
  std::string config;
  std::vector<std::string> set;
  std::optional<int64_t> vocabulary;
  int64_t sequence = 0;  // 0: 2,048, or the model's positions if they are fewer
  std::string batch_tokens;
};

/// Adds CONFIG, --set, --vocabulary, --sequence and --batch-tokens.
void add_planned_file(CLI::App& verb, PlannedFile& file);

/// The run that `file` describes. Throws Error if its vocabulary is left to the data.
RunConfig planned_run(const PlannedFile& file);

/// Throws Error if the vocabulary is left to the data.
void require_known_vocabulary(const ModelConfig& model);

/// Tokens per sequence. Throws Error if --sequence asks for more than the model has positions.
int64_t planned_sequence(const PlannedFile& file, const ModelConfig& model);

/// By use.
Json memory_json(const plan::Memory& memory);

}  // namespace plumb::app
