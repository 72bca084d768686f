// The common part of `plumb plan`, `plumb train --dry-run` and `plumb bench plan`: a configuration, and its cost on
// this machine.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/plan/local_memory.h"
#include "plumb/plan/local_time.h"
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

/// How `plumb train`, in one process, divides a step into batches that are computed at once.
struct LocalStep {
  plan::LocalBatch batch;
  int64_t repetitions = 1;
};
/// Throws Error if the run has several processes.
LocalStep local_step(const RunConfig& run, int64_t sequence);

/// The settings of the run that determine its memory in the step.
plan::LocalRun local_run(const TrainConfig& train, const LocalStep& step);

Json memory_json(const plan::Memory& memory);
Json to_json(const plan::LocalMemory& memory);
Json to_json(const plan::LocalTime& time);

/// A table with a line for each part: seconds, operations, bytes, and the share of the limit that binds it.
std::string text_of(const plan::LocalTime& time);

/// `plumb plan --here`: returns the document, and sets `text` to memory by part and time by kind of work.
Json plan_here(const RunConfig& run, int64_t sequence, std::string& text);

}  // namespace plumb::app
