// A batch of model input: concatenated token ids, and where each sequence begins.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "plumb/base/ragged.h"

namespace plumb {

/// The input of a model and its labels: concatenated sequences, without padding. An encoder-decoder reads source and
/// target_input, a decoder target_input, and an encoder source.
struct Batch {
  std::vector<int64_t> source;               // (source tokens)
  std::vector<int64_t> segments;             // (source tokens): 0, or 1 in the second sentence of a pair; empty: all 0
  std::vector<int64_t> target_input;         // (target tokens)
  std::vector<int64_t> labels;               // what to predict, one for each row of Model::states
  std::vector<int64_t> predicted_positions;  // of the source, for an encoder without pooling; empty: all
  std::vector<double> weights;               // of the labels in the loss; empty: all 1
  Ragged source_layout, target_layout;
  std::vector<int64_t> examples;  // the index of each example in its split

  /// The sum of the weights: the divisor of the mean loss.
  [[nodiscard]] double weight() const {
    if (weights.empty()) return static_cast<double>(labels.size());
    return std::accumulate(weights.begin(), weights.end(), 0.0);
  }

  /// Target tokens, or source tokens if there are no target tokens; for throughput.
  [[nodiscard]] int64_t tokens() const {
    return static_cast<int64_t>(target_input.empty() ? source.size() : target_input.size());
  }

  bool operator==(const Batch&) const = default;
};

}  // namespace plumb
