// A stack of layers, each a list of sub-layers run through the residual scheme: encoder, decoder with cross-attention,
// and decoder without, over whole sequences and step by step.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plumb/model/config.h"
#include "plumb/nn/attention/multi_head.h"
#include "plumb/nn/context.h"
#include "plumb/nn/feed_forward/feed_forward.h"
#include "plumb/nn/position/position.h"
#include "plumb/nn/residual/residual.h"

namespace plumb {

/// What decoding step by step keeps: for every row (a hypothesis) what its self-attentions have seen, and the source
/// that it looks at.
struct DecoderState {
  std::vector<std::unique_ptr<AttentionState>> self;  // [layer]
  std::vector<AttentionMemory> memory;                // [layer]; empty without cross-attention
  std::vector<int64_t> rows_per_source;               // hypotheses of each source, adjacent and in order
  int64_t position = 0;

  /// Row i becomes what row order[i] was; `rows` as rows_per_source afterwards.
  void reorder(const std::vector<int64_t>& order, std::vector<int64_t> rows);
};

class Stack {
 public:
  struct Shape {
    StackKind stack = StackKind::encoder;  // its name begins those of the parameters
    int64_t layers = 0;
    bool causal = false;
    bool cross_attention = false;
  };
  Stack(Parameters& parameters, const ModelConfig& config, const Shape& shape, Positions& positions);

  /// x: (tokens, d_model) → (tokens, d_model). With cross-attention, `memory` are the hidden states of the source,
  /// (source tokens, d_model); without, it is undefined.
  [[nodiscard]] Tensor operator()(const Tensor& x, const Ragged& layout, const Tensor& memory,
                                  const Ragged& memory_layout, ForwardContext& context) const;
  [[nodiscard]] Tensor operator()(const Tensor& x, const Ragged& layout, ForwardContext& context) const {
    return (*this)(x, layout, {}, {}, context);
  }

  /// Whether the scheme's initialization ends with a profiling pass.
  [[nodiscard]] bool profiled() const { return scheme_->profiled(); }

  /// The state of one row a source, or of `rows` rows without cross-attention; no graph.
  [[nodiscard]] DecoderState start(const Tensor& memory, const Ragged& memory_layout) const;
  [[nodiscard]] DecoderState start(int64_t rows) const;

  /// One more position of every row: x (rows, d_model) → (rows, d_model); no dropout, no graph.
  [[nodiscard]] Tensor step(const Tensor& x, DecoderState& state) const;

 private:
  struct Layer {
    MultiHeadAttention self_attention;
    std::unique_ptr<MultiHeadAttention> cross_attention;
    std::unique_ptr<FeedForward> feed_forward;
  };

  Shape shape_;
  std::vector<Layer> layers_;
  std::unique_ptr<ResidualScheme> scheme_;
};

}  // namespace plumb
