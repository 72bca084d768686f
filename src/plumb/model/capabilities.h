// What a model can do beside a loss: generate, translate, classify. Search and sampling work on these interfaces, never
// on a class of models.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/base/batch.h"
#include "plumb/base/ragged.h"
#include "plumb/model/stack.h"
#include "plumb/ops/torch.h"

namespace plumb {

/// A decoder that reads tokens as they come and keeps what it has seen in a state, row by row. No dropout, no graph.
class IncrementalDecoder {
 public:
  virtual ~IncrementalDecoder() = default;

  /// Sequence r of `layout` holds further tokens of row r; rows may differ in length and position. Hidden states of
  /// every token, (tokens, d_model).
  virtual Tensor read(DecoderState& state, const std::vector<int64_t>& tokens, const Ragged& layout) = 0;

  /// One token a row: hidden states (rows, d_model).
  Tensor step(DecoderState& state, const std::vector<int64_t>& tokens) {
    return read(state, tokens, Ragged(std::vector<int64_t>(tokens.size(), 1)));
  }

  /// (tokens, d_model) → (tokens, vocabulary).
  [[nodiscard]] virtual Tensor logits(const Tensor& hidden) const = 0;

  /// Positions that a row can have; INT64_MAX if there is no limit.
  [[nodiscard]] virtual int64_t longest() const = 0;

  [[nodiscard]] virtual int64_t vocabulary() const = 0;
};

/// A language model.
class Generates : public IncrementalDecoder {
 public:
  /// The state of `rows` rows that have read nothing.
  virtual DecoderState start(int64_t rows) = 0;
};

/// A model of pairs.
class Translates : public IncrementalDecoder {
 public:
  /// The state of one row for each source.
  virtual DecoderState start(const std::vector<int64_t>& source, const Ragged& layout) = 0;
};

class Classifies {
 public:
  virtual ~Classifies() = default;

  /// (sequences, labels).
  virtual Tensor class_logits(const Batch& batch) = 0;
};

}  // namespace plumb
