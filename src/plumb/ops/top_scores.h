// The best next tokens of every row of logits, for decoding; without an autograd graph.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/ops/torch.h"

namespace plumb::ops {

struct TopScores {
  int64_t k = 0;                      // at most the number of ids
  std::vector<int32_t> ids;           // (rows, k): best first; −1 if a row has fewer scores above −∞
  std::vector<double> scores;         // (rows, k): logits
  std::vector<double> log_partition;  // (rows): log Σ exp(logits); score − log_partition is the log-probability
};

/// The k best of each row of logits (rows, vocabulary) among the ids from `first_id` on. The log-partition covers the
/// whole vocabulary; it is empty unless `normalize`. If any of these ids has the score NaN, the first such id is the
/// row's only result. Throws Error if k < 1 or first_id is outside the vocabulary.
TopScores top_scores(const Tensor& logits, int64_t k, int64_t first_id, bool normalize);

}  // namespace plumb::ops
