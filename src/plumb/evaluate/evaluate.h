// Evaluates a language model on tasks: prompts, requests, answers, metrics.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/evaluate/metrics.h"
#include "plumb/evaluate/scoring.h"
#include "plumb/evaluate/task.h"

namespace plumb {

struct EvaluateOptions {
  int64_t limit = 0;              // only the first items of each task; 0: all
  int64_t max_length = 2048;      // tokens that the model reads at once
  int64_t max_tokens = 256;       // per generated answer
  std::vector<int32_t> ends;      // tokens besides EOS that end a generated answer of an imported model
  double repetition_penalty = 1;  // in generated answers; 1: none
  ScoringOptions scoring;
  Resampling resampling;          // of the intervals of metrics; 0 samples: no intervals
  std::filesystem::path answers;  // directory for answers, one file per task; empty: not saved
  Json model;                     // identifies the weights and the tokenizer, on which saved answers depend
};

/// A model's answers to one item.
struct ItemResult {
  std::vector<std::string> continuations;  // of the item's context; for a generated answer: one empty text
  std::vector<Answer> answers;             // one per continuation; for a text read in windows: their sum
};

struct TaskResult {
  EvaluationTask task;
  int64_t max_tokens = 0;         // per generated answer
  std::vector<ItemResult> items;  // of the evaluated items: the first ones of the task
  std::vector<MetricResult> metrics;
  int64_t same_tokens = 0;            // items of which some choices are the same tokens
  int64_t bytes = 0, lost_bytes = 0;  // of the continuations; those that the tokenizer loses (TextEncoder::lost_bytes)
  int64_t tokens = 0;                 // of the continuations
};

/// Throws Error if an item cannot be evaluated, for example if a continuation has no tokens or more than
/// `options.max_length`.
void check_items(const EvaluationTask& task, const TextEncoder& encoder, const EvaluateOptions& options);

/// Evaluates a model on a task. Throws Error on a request that the model cannot read, and for the same reasons as
/// `score_requests` and `complete_prompts`.
TaskResult evaluate_task(Generates& model, const TextEncoder& encoder, EvaluationTask task,
                         const EvaluateOptions& options);

}  // namespace plumb
