// A batch of sentence pairs as the models read it: token ids one after the other, and where each sentence begins.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/base/ragged.h"

namespace plumb {

/// Ids of the special tokens in every vocabulary of Plumb's.
constexpr int32_t kPad = 0, kBos = 1, kEos = 2, kUnknown = 3;

/// What a model reads and what it is to predict: sequences one after the other, without padding. An encoder-decoder reads
/// source and target_input, a decoder target_input, an encoder source.
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

  bool operator==(const Batch&) const = default;
};

/// Appends one pair, given without specials.
void append(Batch& batch, std::span<const int32_t> source, std::span<const int32_t> target, int64_t example);

/// Appends a block of running text, not empty, as a target whose end is none: BOS and all ids but the last are read,
/// the ids are predicted. The source is empty.
void append_running_text(Batch& batch, std::span<const int32_t> ids, int64_t example);

/// A batch from `{"source": [[ids]], "target": [[ids]]}`, ids without specials. Throws Error if it is not of that
/// shape.
Batch batch_from_json(const Json& json);

}  // namespace plumb
