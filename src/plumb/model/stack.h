// A stack of layers, each a list of sub-layers run through the residual scheme: encoder, decoder with cross-attention,
// and decoder without, over whole sequences and incrementally.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "plumb/model/config.h"
#include "plumb/model/decoder_state.h"
#include "plumb/nn/attention/multi_head.h"
#include "plumb/nn/context.h"
#include "plumb/nn/feed_forward/feed_forward.h"
#include "plumb/nn/layer_range.h"
#include "plumb/nn/position/position.h"
#include "plumb/nn/residual/residual.h"

namespace plumb {

class Stack {
 public:
  struct Shape {
    StackKind stack = StackKind::encoder;  // prefix of the parameters' names
    int64_t layers = 0;
    bool causal = false;
    bool cross_attention = false;
    bool center_result = false;  // see ModelConfig::center_memory
  };
  Stack(Parameters& parameters, const ModelConfig& config, const Shape& shape, Positions& positions);

  /// x: (tokens, d_model) → (tokens, d_model). With cross-attention, `memory` holds the hidden states of the source,
  /// (source tokens, d_model); otherwise it is undefined.
  [[nodiscard]] Tensor operator()(const Tensor& x, const Ragged& layout, const Tensor& memory,
                                  const Ragged& memory_layout, ForwardContext& context) const;
  [[nodiscard]] Tensor operator()(const Tensor& x, const Ragged& layout, ForwardContext& context) const {
    return (*this)(x, layout, {}, {}, context);
  }

  /// Runs those layers of the range that this stack has; its first layer is number `first` of the model. `input`
  /// returns the stack's input, (tokens, d_model), and is called if its first layer is among them. → the result of the
  /// stack, (tokens, d_model), if its last layer is among them; else undefined.
  [[nodiscard]] Tensor part(LayerRange& range, int64_t first, const std::function<Tensor()>& input,
                            const Ragged& layout, const Ragged& memory_layout, ForwardContext& context) const;

  /// Divides attention and feed-forward of every layer among the ranks; see MultiHeadAttention and FeedForward.
  void divide(LayerDivision& division);

  /// Whether the scheme's initialization ends with a profiling pass.
  [[nodiscard]] bool profiled() const { return scheme_->profiled(); }

  /// The state of one row per source, or of `rows` rows without cross-attention; no graph.
  [[nodiscard]] DecoderState start(const Tensor& memory, const Ragged& memory_layout) const;
  [[nodiscard]] DecoderState start(int64_t rows) const;

  /// Reads further positions of each row, those of sequence r of `layout`, at `positions`: x (tokens, d_model) →
  /// (tokens, d_model); no dropout, no graph.
  [[nodiscard]] Tensor read(const Tensor& x, const Ragged& layout, const std::vector<int64_t>& positions,
                            DecoderState& state) const;

 private:
  struct Layer {
    MultiHeadAttention self_attention;
    std::unique_ptr<MultiHeadAttention> cross_attention;
    std::unique_ptr<FeedForward> feed_forward;
  };
  /// An attention of layer i: (tokens, d_model) → (tokens, d_model).
  using Attend = std::function<Tensor(size_t layer, const Tensor& x)>;
  [[nodiscard]] Stream enter(const Tensor& x, ForwardContext& context) const;
  [[nodiscard]] Tensor leave(const Stream& stream, const Ragged& layout, ForwardContext& context) const;
  struct Attentions {
    const Attend& self;
    const Attend& cross;
  };
  struct StackExtras;
  /// Runs layer i: updates the stream.
  void apply_layer(size_t i, Stream& stream, const Attentions& attentions, ForwardContext& context) const;
  void apply_layer(size_t i, Stream& stream, StackExtras& extras, ForwardContext& context) const;
  /// The tensors that a layer reads, and those that others read after it, in one list; and the reverse.
  struct StreamShape;
  [[nodiscard]] std::vector<Tensor> flatten(Stream& stream, const StackExtras& extras, StreamShape& stream_shape) const;
  static void unflatten(const std::vector<Tensor>& tensors, const StreamShape& stream_shape, Stream& stream,
                        StackExtras& extras);
  /// Runs a layer that has its parameters from the context's source, forward and backward.
  void fetch_and_apply(size_t i, Stream& stream, StackExtras& extras, ForwardContext& context) const;
  /// The same for any layer, keeping its input instead of its activations.
  void recompute_layer(size_t i, Stream& stream, StackExtras& extras, ForwardContext& context) const;

  Shape shape_;
  bool parallel_;        // self-attention and feed-forward side by side, as one sub-layer
  bool value_residual_;  // layers read the values of the first
  std::vector<Layer> layers_;
  std::unique_ptr<ResidualScheme> scheme_;
};

}  // namespace plumb
