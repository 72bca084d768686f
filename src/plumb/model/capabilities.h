// What a model can do besides computing its loss: generate, translate, classify, embed. Search, sampling and metrics
// use these interfaces, never a model class; Model returns the ones it supports.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/base/batch.h"
#include "plumb/base/ragged.h"
#include "plumb/model/decoder_state.h"
#include "plumb/nn/context.h"
#include "plumb/ops/torch.h"

namespace plumb {

/// Reads rows of tokens piece by piece and predicts what follows, without dropout and without a graph. Several threads
/// may share one decoder, each with its own states.
class IncrementalDecoder {
 public:
  virtual ~IncrementalDecoder() = default;

  /// Reads further tokens of each row: those of sequence r of `layout` follow the tokens that row r has read. Rows may
  /// differ in length and position; a row that has ended may read none. → the hidden states of the new tokens, (tokens,
  /// d_model). Throws Error beyond `longest`.
  virtual Tensor read(DecoderState& state, const std::vector<int64_t>& tokens, const Ragged& layout) = 0;

  /// One token for each row → (rows, d_model).
  Tensor step(DecoderState& state, const std::vector<int64_t>& tokens) {
    return read(state, tokens, Ragged(std::vector<int64_t>(tokens.size(), 1)));
  }

  /// Hidden states (tokens, d_model) → (tokens, vocabulary).
  [[nodiscard]] virtual Tensor logits(const Tensor& hidden) const = 0;

  /// The maximum number of tokens in a row; the largest int64_t if there is no limit.
  [[nodiscard]] virtual int64_t longest() const = 0;

  [[nodiscard]] virtual int64_t vocabulary() const = 0;
};

/// Continues a given beginning.
class Generates : public IncrementalDecoder {
 public:
  /// The state of `rows` rows that have read nothing.
  virtual DecoderState start(int64_t rows) = 0;
};

/// Reads a source and predicts its counterpart.
class Translates : public IncrementalDecoder {
 public:
  /// The state of one row per source, with no target tokens read.
  virtual DecoderState start(const std::vector<int64_t>& source, const Ragged& layout) = 0;

  [[nodiscard]] virtual int64_t longest_source() const = 0;
  [[nodiscard]] virtual int64_t source_vocabulary() const = 0;
};

/// Assigns one of several labels to a sequence.
class Classifies {
 public:
  virtual ~Classifies() = default;
  /// → (sequences, labels), without dropout and without a graph.
  virtual Tensor class_logits(const Batch& batch) = 0;
  /// Whether it reads the target side of batches, as decoders do, instead of the source.
  [[nodiscard]] virtual bool reads_target() const { return false; }
  [[nodiscard]] virtual int64_t labels() const = 0;
};

/// Maps each token of a sequence to a vector.
class Embeds {
 public:
  virtual ~Embeds() = default;
  /// tokens and their segments (empty: all 0) → (tokens, d_model).
  virtual Tensor hidden(const std::vector<int64_t>& tokens, const std::vector<int64_t>& segments, const Ragged& layout,
                        ForwardContext& context) = 0;
};

}  // namespace plumb
