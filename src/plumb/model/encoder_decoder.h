// The encoder-decoder Transformer: two stacks of layers between embeddings and output.
#pragma once

#include <memory>
#include <vector>

#include "plumb/model/embedding.h"
#include "plumb/model/model.h"
#include "plumb/model/stack.h"

namespace plumb {

/// Parameter names are those of torch.nn.Transformer{Encoder,Decoder} with src_embed, tgt_embed and output.
class EncoderDecoder final : public Model {
 public:
  /// Builds the model with all parameters 0; `type` is at::kFloat or at::kDouble. Throws Error if the configuration is
  /// none, or one of another kind of model.
  explicit EncoderDecoder(const ModelConfig& config, at::ScalarType type = at::kFloat);

  /// Source tokens to memory, (source tokens, d_model).
  Tensor encode(const std::vector<int64_t>& source, const Ragged& layout, ForwardContext& context);

  /// Target tokens, each seeing those before it and the memory, to hidden states (target tokens, d_model).
  Tensor decode(const std::vector<int64_t>& target, const Ragged& layout, const Tensor& memory,
                const Ragged& memory_layout, ForwardContext& context);

  Tensor states(const Batch& batch, ForwardContext& context) override;

  /// Decoding step by step: a state for one row a source sentence; then one token a row in, hidden states (rows,
  /// d_model) out. Without dropout and without a graph.
  DecoderState start(const Tensor& memory, const Ragged& memory_layout);
  Tensor step(DecoderState& state, const std::vector<int64_t>& tokens);

 private:
  [[nodiscard]] bool profiled() const override { return encoder_->profiled(); }

  std::unique_ptr<TokenEmbedding> source_;
  std::unique_ptr<TokenEmbedding> target_;
  std::unique_ptr<Stack> encoder_;
  std::unique_ptr<Stack> decoder_;
};

}  // namespace plumb
