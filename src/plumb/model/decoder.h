// The decoder-only Transformer: a causal language model, p(token | those before it).
#pragma once

#include <memory>
#include <vector>

#include "plumb/model/embedding.h"
#include "plumb/model/model.h"
#include "plumb/model/stack.h"

namespace plumb {

/// Reads the target side of batches alone. Parameters: tgt_embed.weight, decoder.layers.i.{self_attn, linear1, linear2,
/// norm1, norm2}, decoder.norm, and output.weight unless it is shared with the embedding.
class Decoder final : public Model {
 public:
  /// Builds the model with all parameters 0; `type` is at::kFloat or at::kDouble. Throws Error if the configuration is
  /// none, or one of another kind of model.
  explicit Decoder(const ModelConfig& config, at::ScalarType type = at::kFloat);

  /// Tokens, each seeing itself and those before it, to hidden states (tokens, d_model).
  Tensor hidden(const std::vector<int64_t>& tokens, const Ragged& layout, ForwardContext& context);

  Tensor states(const Batch& batch, ForwardContext& context) override;

  /// Step by step: a state of `rows` rows; then one token a row in, hidden states (rows, d_model) out. Without dropout
  /// and without a graph.
  DecoderState start(int64_t rows);
  Tensor step(DecoderState& state, const std::vector<int64_t>& tokens);

 private:
  [[nodiscard]] bool profiled() const override { return stack_->profiled(); }

  std::unique_ptr<TokenEmbedding> embedding_;
  std::unique_ptr<Stack> stack_;
};

}  // namespace plumb
