// What a model can do beyond its loss: generate, translate, classify, embed. Search, sampling and metrics work on these
// interfaces, never on a class of models; Model hands out those that it has.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/base/batch.h"
#include "plumb/base/ragged.h"
#include "plumb/model/decoder_state.h"
#include "plumb/nn/context.h"
#include "plumb/ops/torch.h"

namespace plumb {

/// Reads rows of tokens piece by piece and predicts what follows. Without dropout and without a graph; several threads
/// may use one, each with states of its own.
class IncrementalDecoder {
 public:
  virtual ~IncrementalDecoder() = default;

  /// Further tokens of every row: those of sequence r of `layout` follow what row r has read. Rows may differ in length
  /// and in position; one that has ended may read none. → the hidden state of every token, (tokens, d_model). Throws
  /// Error beyond `longest`.
  virtual Tensor read(DecoderState& state, const std::vector<int64_t>& tokens, const Ragged& layout) = 0;

  /// One token of every row → (rows, d_model).
  Tensor step(DecoderState& state, const std::vector<int64_t>& tokens) {
    return read(state, tokens, Ragged(std::vector<int64_t>(tokens.size(), 1)));
  }

  /// Hidden states (tokens, d_model) → (tokens, vocabulary).
  [[nodiscard]] virtual Tensor logits(const Tensor& hidden) const = 0;

  /// How many tokens a row can have; the largest number there is where nothing limits it.
  [[nodiscard]] virtual int64_t longest() const = 0;

  [[nodiscard]] virtual int64_t vocabulary() const = 0;
};

/// Continues any beginning.
class Generates : public IncrementalDecoder {
 public:
  /// `rows` rows that have read nothing.
  virtual DecoderState start(int64_t rows) = 0;
};

/// Reads a source and predicts its counterpart.
class Translates : public IncrementalDecoder {
 public:
  /// A row for each source, which has read nothing of the target.
  virtual DecoderState start(const std::vector<int64_t>& source, const Ragged& layout) = 0;

  [[nodiscard]] virtual int64_t longest_source() const = 0;
  [[nodiscard]] virtual int64_t source_vocabulary() const = 0;
};

/// Gives one of several labels to a sequence.
class Classifies {
 public:
  virtual ~Classifies() = default;
  /// → (sequences, labels), without dropout and without a graph.
  virtual Tensor class_logits(const Batch& batch) = 0;
  [[nodiscard]] virtual int64_t labels() const = 0;
};

/// Gives every token of a sequence a vector.
class Embeds {
 public:
  virtual ~Embeds() = default;
  /// tokens, and their segments (empty: all 0) → (tokens, d_model).
  virtual Tensor hidden(const std::vector<int64_t>& tokens, const std::vector<int64_t>& segments, const Ragged& layout,
                        ForwardContext& context) = 0;
};

}  // namespace plumb
