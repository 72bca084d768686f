// One process's share of a step: its examples of the step's batches, in parts that fit into memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plumb/base/batch.h"
#include "plumb/data/batches.h"
#include "plumb/task/dataset.h"

namespace plumb {

/// How the work of a step is divided. The division does not affect the result, except for rounding, and for norms with
/// statistics over the tokens that are computed together.
struct Division {
  int64_t rank = 0, processes = 1;
  int64_t micro_batch_tokens = 0;  // maximum tokens per forward pass of a process; 0: its share of a batch

  bool operator==(const Division&) const = default;
};

/// Examples that are computed at once. Their layouts have the positions of their rows in the step (Ragged::origins).
struct MicroBatch {
  Batch batch;
  bool placeholder = false;  // repeats an example with weight 0, because another process has more micro-batches
};

/// A process's share of a step, which computes one or several batches of the plan. Each of n processes takes every n-th
/// example of a batch: neighbors have similar lengths, so the shares have similar sizes. All processes have the same
/// number of micro-batches, because norms may exchange sums within them.
struct StepShare {
  std::vector<MicroBatch> micro_batches;  // at least one
  double weight = 0;                      // total weight of the step's labels, over all processes and micro-batches
};

/// The share of a step. `costs`: of all examples of the dataset; `draw`: the run's seed and the step's epoch. Throws
/// Error if a batch has to be divided whose sequences cannot be assigned to its examples: unless each example has one
/// sequence, Batch::examples must have one entry per sequence.
StepShare step_share(const Dataset& dataset, const ExampleCosts& costs, std::span<const std::vector<int64_t>> batches,
                     const Division& division, const Draw& draw = {});

/// The batches of a plan that need the most memory: the one with the most tokens and, if different, the one with the
/// longest sequence. Indices into the plan; empty if the plan is empty.
std::vector<size_t> largest_batches(const ExampleCosts& costs, const std::vector<std::vector<int64_t>>& plan);

/// "1,234 target tokens, longest sequence 56, sentences 3, 17, 20, … (121 in all)", for messages about a step.
std::string describe_batches(const ExampleCosts& costs, std::span<const std::vector<int64_t>> batches);

}  // namespace plumb
