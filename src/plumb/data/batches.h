// Which examples form a batch. A plan is a list of batches, each a list of example indices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace plumb {

/// The size of an example in a batch: tokens on each side, including special tokens.
struct ExampleCost {
  int64_t source = 0, target = 0;
  [[nodiscard]] int64_t larger() const { return std::max(source, target); }
};

/// One epoch of training: every example once, in batches of at most `tokens` tokens (the larger of the sums over the
/// two sides), with examples of similar length together and the batches in random order. A function of its arguments
/// only. Throws Error if a single example is larger than `tokens`.
std::vector<std::vector<int64_t>> plan_batches(std::span<const ExampleCost> costs, int64_t tokens, uint64_t seed,
                                               int64_t epoch);

/// Divides a batch into as few consecutive parts of at most `tokens` tokens (0: no limit) as possible, the largest of
/// them as small as possible; an example larger than `tokens` forms its own part. At least one part, which is empty if
/// the batch is.
std::vector<std::vector<int64_t>> divide_batch(std::span<const ExampleCost> costs, const std::vector<int64_t>& examples,
                                               int64_t tokens);

/// For evaluation: every example once, shortest first, nothing random; an example larger than `tokens` forms its own
/// batch.
std::vector<std::vector<int64_t>> plan_evaluation_batches(std::span<const ExampleCost> costs, int64_t tokens);

}  // namespace plumb
