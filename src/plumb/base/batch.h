// A batch as the models read it: token ids one after the other, and where each sequence begins.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "plumb/base/ragged.h"

namespace plumb {

/// What a model reads and what it is to predict: sequences one after the other, without padding. An encoder-decoder
/// reads source and target_input, a decoder target_input, an encoder source.
struct Batch {
  std::vector<int64_t> source;        // (source tokens)
  std::vector<int64_t> segments;      // (source tokens): 0, or 1 in the second sentence of a pair; empty: all 0
  std::vector<int64_t> target_input;  // (target tokens)
  std::vector<int64_t> labels;        // what is to be predicted, one for each row of Model::states
  std::vector<double> weights;        // of the labels in the loss; empty: 1 each
  Ragged source_layout, target_layout;
  std::vector<int64_t> examples;  // the index of each example in its split

  /// The sum of the weights: what the mean loss divides by.
  [[nodiscard]] double weight() const {
    if (weights.empty()) return static_cast<double>(labels.size());
    return std::accumulate(weights.begin(), weights.end(), 0.0);
  }

  /// For speeds: target tokens, or source tokens where there are none.
  [[nodiscard]] int64_t tokens() const {
    return static_cast<int64_t>(target_input.empty() ? source.size() : target_input.size());
  }

  bool operator==(const Batch&) const = default;
};

}  // namespace plumb
