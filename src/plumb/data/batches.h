// Which examples go together in a batch. A plan is a list of batches, each a list of indices of examples.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "plumb/base/batch.h"
#include "plumb/data/split.h"

namespace plumb {

/// What an example takes up in a batch: tokens on each side, special tokens included.
struct ExampleCost {
  int64_t source = 0, target = 0;
  [[nodiscard]] int64_t larger() const { return std::max(source, target); }
};

/// The costs of a split's pairs as make_batch puts them into a batch.
std::vector<ExampleCost> costs_of(const ParallelSplit& split);

/// One epoch of training: every example once, in batches of at most `tokens` tokens (the larger of the sums over the
/// two sides), examples of similar length together, the order of the batches random. A function of its arguments alone.
/// Throws Error if a single example is larger than `tokens`.
std::vector<std::vector<int64_t>> plan_batches(std::span<const ExampleCost> costs, int64_t tokens, uint64_t seed,
                                               int64_t epoch);

/// For evaluation: every example once, shortest first, nothing random; an example larger than `tokens` is a batch of
/// its own.
std::vector<std::vector<int64_t>> plan_evaluation_batches(std::span<const ExampleCost> costs, int64_t tokens);

/// The first `count` pairs of a split (0: all) as plan_evaluation_batches has them: what measurements go through.
std::vector<Batch> evaluation_batches(const ParallelSplit& split, int64_t tokens, int64_t count = 0);

/// The pairs of a split as a batch, in the order given.
Batch make_batch(const ParallelSplit& split, std::span<const int64_t> examples);

}  // namespace plumb
