// Which pairs go together in a batch. A plan is a list of batches, each a list of indices into a split.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plumb/base/batch.h"
#include "plumb/data/split.h"

namespace plumb {

/// One epoch of training: every pair once, in batches of at most `tokens` tokens (the larger of the sums over the
/// source and over the target side, one special a sentence included), sentences of similar length together, the order
/// of the batches random. A function of its arguments alone. Throws Error if a single pair is larger than `tokens`.
std::vector<std::vector<int64_t>> plan_batches(const ParallelSplit& split, int64_t tokens, uint64_t seed,
                                               int64_t epoch);

/// For evaluation: every pair once, shortest first, nothing random; a pair larger than `tokens` is a batch of its own.
std::vector<std::vector<int64_t>> plan_evaluation_batches(const ParallelSplit& split, int64_t tokens);

/// The first `count` pairs of a split (0: all) as plan_evaluation_batches has them: what measurements go through.
std::vector<Batch> evaluation_batches(const ParallelSplit& split, int64_t tokens, int64_t count = 0);

/// The pairs of a split as a batch, in the order given.
Batch make_batch(const ParallelSplit& split, std::span<const int64_t> examples);

}  // namespace plumb
