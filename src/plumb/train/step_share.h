// What one process computes of one step: its examples of the step's batches, in parts that fit into memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plumb/base/batch.h"
#include "plumb/data/batches.h"
#include "plumb/task/dataset.h"

namespace plumb {

/// How the work of a step is divided. Neither number has an influence on the step, except by rounding, and by norms
/// whose statistics are those of the tokens that are computed together.
struct Division {
  int64_t rank = 0, processes = 1;
  int64_t micro_batch_tokens = 0;  // the most tokens that a process computes at once; 0: its share of a batch

  bool operator==(const Division&) const = default;
};

/// The examples that are computed at once. Their layouts say where their rows are among those of the step.
struct MicroBatch {
  Batch batch;
  bool idle = false;  // only repeats an example, because another process has more to compute: counts 0
};

/// A step is taken on one or several batches of the plan, one after another. Of each, a process takes every n-th
/// example: neighbors are of similar length, so the shares are of similar size. Every process has the same number of
/// micro-batches, because norms may exchange sums within them.
struct StepShare {
  std::vector<MicroBatch> micro_batches;  // at least one
  double weight = 0;  // total weight of the labels of the step, all processes' and all micro-batches'
};

/// The share of a step. `costs`: of all examples of the dataset; `draw`: the run's seed and the step's epoch. Throws
/// Error if a batch is to be divided of which it is unknown which sequences belong to which example: Batch::examples
/// must have one entry per sequence, unless each example has one.
StepShare step_share(const Dataset& dataset, const ExampleCosts& costs, std::span<const std::vector<int64_t>> batches,
                     const Division& division, const Draw& draw = {});

/// The batches of a plan that need the most memory, for trying out whether it is enough: the one of the most tokens,
/// and if that is another one, the one of the longest sequence. Indices in the plan; empty for an empty one.
std::vector<size_t> largest_batches(const ExampleCosts& costs, const std::vector<std::vector<int64_t>>& plan);

/// "1,234 target tokens, longest sequence 56, sentences 3, 17, 20, … (121 in all)", for messages about a step.
std::string describe_batches(const ExampleCosts& costs, std::span<const std::vector<int64_t>> batches);

}  // namespace plumb
