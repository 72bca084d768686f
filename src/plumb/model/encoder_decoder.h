// The encoder-decoder Transformer: layers as lists of sub-layers, run through the residual scheme.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "plumb/base/batch.h"
#include "plumb/model/config.h"
#include "plumb/nn/attention/multi_head.h"
#include "plumb/nn/context.h"
#include "plumb/nn/feed_forward.h"
#include "plumb/nn/parameters.h"
#include "plumb/nn/position/position.h"
#include "plumb/nn/residual/residual.h"

namespace plumb {

/// The loss of a batch.
struct Loss {
  Tensor value;        // scalar, differentiable: scale · Σ over target tokens of the label-smoothed cross-entropy
  double nll = 0;      // Σ −log p(token)
  int64_t tokens = 0;  // target tokens
};

struct LossOptions {
  double label_smoothing = 0;
  /// Factor on the sum over tokens; none: 1/tokens, the mean of this batch.
  std::optional<double> scale;
  /// Keep the logits, so that the loss can be differentiated twice.
  bool twice_differentiable = false;
};

/// What decoding step by step keeps: for every row (a hypothesis) its keys and values, and the source it looks at.
struct DecoderState {
  std::vector<KeyValueCache> self;  // [decoder layer]
  std::vector<Tensor> memory;       // [decoder layer]: projected source, (source tokens, 2·d)
  Ragged memory_layout;
  std::vector<int64_t> rows_per_source;  // hypotheses of each source sentence, adjacent and in order
  int64_t position = 0;

  /// Row i becomes what row order[i] was; `rows` as rows_per_source afterwards.
  void reorder(const std::vector<int64_t>& order, std::vector<int64_t> rows);
};

/// Parameter names are those of torch.nn.Transformer{Encoder,Decoder} with src_embed, tgt_embed and output.
class EncoderDecoder {
 public:
  /// Builds the model with all parameters 0; `type` is at::kFloat or at::kDouble. Throws Error if the configuration is
  /// none.
  explicit EncoderDecoder(const ModelConfig& config, at::ScalarType type = at::kFloat);

  /// Fills the parameters by config().initialisation. A scheme that is profiled is so with a batch of random tokens.
  void initialise(uint64_t seed);

  /// The profiling pass of a scheme that has one (Admin), with a batch of one's own; to follow `initialise`.
  void profile(const Batch& batch);

  [[nodiscard]] const ModelConfig& config() const { return config_; }
  [[nodiscard]] const Parameters& parameters() const { return parameters_; }

  /// Source tokens to memory, (source tokens, d_model).
  Tensor encode(const std::vector<int64_t>& source, const Ragged& layout, ForwardContext& context);

  /// Target tokens, each seeing those before it and the memory, to hidden states (target tokens, d_model).
  Tensor decode(const std::vector<int64_t>& target, const Ragged& layout, const Tensor& memory,
                const Ragged& memory_layout, ForwardContext& context);

  /// (tokens, d_model) → (tokens, target vocabulary).
  [[nodiscard]] Tensor logits(const Tensor& hidden) const;

  Loss loss(const Batch& batch, const LossOptions& options, ForwardContext& context);

  /// Decoding step by step: a state for one row a source sentence; then one token a row in, hidden states (rows,
  /// d_model) out. Without dropout and without a graph.
  DecoderState start(const Tensor& memory, const Ragged& memory_layout);
  Tensor step(DecoderState& state, const std::vector<int64_t>& tokens);

 private:
  struct EncoderLayer {
    MultiHeadAttention self_attention;
    FeedForward feed_forward;
  };
  struct DecoderLayer {
    MultiHeadAttention self_attention;
    MultiHeadAttention cross_attention;
    FeedForward feed_forward;
  };

  Tensor embed(const Tensor& table, Positions& positions, const std::vector<int64_t>& ids, const Ragged& layout,
               ForwardContext& context);

  ModelConfig config_;
  Parameters parameters_;
  Tensor source_embedding_;
  Tensor target_embedding_;
  Tensor output_;
  std::unique_ptr<Positions> source_positions_;
  std::unique_ptr<Positions> target_positions_;
  std::vector<EncoderLayer> encoder_;
  std::vector<DecoderLayer> decoder_;
  std::unique_ptr<ResidualScheme> encoder_scheme_;
  std::unique_ptr<ResidualScheme> decoder_scheme_;
};

}  // namespace plumb
