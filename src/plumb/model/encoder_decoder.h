// The encoder-decoder Transformer: two stacks of layers between embeddings and output.
#pragma once

#include <memory>
#include <vector>

#include "plumb/model/capabilities.h"
#include "plumb/model/embedding.h"
#include "plumb/model/model.h"
#include "plumb/model/stack.h"

namespace plumb {

/// Parameter names are those of torch.nn.Transformer{Encoder,Decoder} with src_embed, tgt_embed and output.
class EncoderDecoder final : public Model, public Translates {
 public:
  /// Builds the model with all parameters 0; `type` is at::kFloat or at::kDouble. Throws Error if the configuration is
  /// invalid or of another kind.
  explicit EncoderDecoder(const ModelConfig& config, at::ScalarType type = at::kFloat);

  /// Maps source tokens to memory, (source tokens, d_model); segments: one per token, or empty for all 0.
  Tensor encode(const std::vector<int64_t>& source, const Ragged& layout, ForwardContext& context,
                const std::vector<int64_t>& segments = {});

  /// Maps target tokens, each attending to itself, earlier ones and the memory, to hidden states (target tokens,
  /// d_model).
  Tensor decode(const std::vector<int64_t>& target, const Ragged& layout, const Tensor& memory,
                const Ragged& memory_layout, ForwardContext& context);

  Tensor states(const Batch& batch, ForwardContext& context) override;
  [[nodiscard]] Tensor logits(const Tensor& hidden) const override { return Model::logits(hidden); }
  Translates* translates() override { return this; }

  DecoderState start(const std::vector<int64_t>& source, const Ragged& layout) override;
  /// From the memory returned by `encode`.
  DecoderState start(const Tensor& memory, const Ragged& memory_layout);
  Tensor read(DecoderState& state, const std::vector<int64_t>& tokens, const Ragged& layout) override;
  [[nodiscard]] int64_t longest() const override { return target_->positions().longest(); }
  [[nodiscard]] int64_t longest_source() const override { return source_->positions().longest(); }
  [[nodiscard]] int64_t vocabulary() const override { return config().target_vocabulary; }
  [[nodiscard]] int64_t source_vocabulary() const override { return config().source_vocabulary; }

 private:
  [[nodiscard]] bool profiled() const override { return encoder_->profiled() || decoder_->profiled(); }
  void divide_layers(LayerDivision& division) override {
    source_->divide(division);
    target_->divide(division);
    encoder_->divide(division);
    decoder_->divide(division);
  }

  std::unique_ptr<TokenEmbedding> source_;
  std::unique_ptr<TokenEmbedding> target_;
  std::unique_ptr<Stack> encoder_;
  std::unique_ptr<Stack> decoder_;
};

}  // namespace plumb
