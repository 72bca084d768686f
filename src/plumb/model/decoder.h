// The decoder-only Transformer: a causal language model, p(token | previous tokens), or a sequence classifier (Radford
// et al. 2018, "Improving language understanding by generative pre-training").
#pragma once

#include <memory>
#include <vector>

#include "plumb/model/capabilities.h"
#include "plumb/model/embedding.h"
#include "plumb/model/model.h"
#include "plumb/model/stack.h"
#include "plumb/nn/pooling.h"

namespace plumb {

/// Reads only the target side of batches. Parameters: tgt_embed.weight, decoder.layers.i.{self_attn, linear1, linear2,
/// norm1, norm2}, decoder.norm, and output.weight unless it is shared with the embedding. With model.labels it is a
/// classifier: its states are pooled (model.pooling), and output.weight and output.bias are over the labels.
class Decoder final : public Model, public Generates, public Classifies, public Embeds {
 public:
  /// Builds the model with all parameters 0; `type` is at::kFloat or at::kDouble. Throws Error if the configuration is
  /// invalid or of another kind.
  explicit Decoder(const ModelConfig& config, at::ScalarType type = at::kFloat);

  /// Maps tokens, each attending to itself and earlier ones, to hidden states (tokens, d_model).
  Tensor hidden(const std::vector<int64_t>& tokens, const Ragged& layout, ForwardContext& context);
  Tensor hidden(const std::vector<int64_t>& tokens, const std::vector<int64_t>& segments, const Ragged& layout,
                ForwardContext& context) override;

  /// One row per token or, for a classifier, per sequence.
  Tensor states(const Batch& batch, ForwardContext& context) override;
  [[nodiscard]] Tensor logits(const Tensor& hidden) const override { return Model::logits(hidden); }
  Generates* generates() override { return config().labels > 0 ? nullptr : this; }
  Classifies* classifies() override { return config().labels > 0 ? this : nullptr; }
  Tensor class_logits(const Batch& batch) override;
  [[nodiscard]] int64_t labels() const override { return config().labels; }
  [[nodiscard]] bool reads_target() const override { return true; }
  Embeds* embeds() override { return this; }

  DecoderState start(int64_t rows) override;
  Tensor read(DecoderState& state, const std::vector<int64_t>& tokens, const Ragged& layout) override;
  [[nodiscard]] int64_t longest() const override { return embedding_->positions().longest(); }
  [[nodiscard]] int64_t vocabulary() const override { return config().target_vocabulary; }

 private:
  [[nodiscard]] bool profiled() const override { return stack_->profiled(); }
  void divide_layers(LayerDivision& division) override {
    embedding_->divide(division);
    stack_->divide(division);
  }

  std::unique_ptr<TokenEmbedding> embedding_;
  std::unique_ptr<Stack> stack_;
  Pooling pooling_;  // for a classifier
};

}  // namespace plumb
