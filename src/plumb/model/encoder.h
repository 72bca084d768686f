// The encoder-only Transformer: each token sees the whole sequence; it classifies sequences or predicts tokens (BERT,
// Devlin et al. 2019, arXiv 1810.04805).
#pragma once

#include <memory>
#include <vector>

#include "plumb/model/capabilities.h"
#include "plumb/model/embedding.h"
#include "plumb/model/model.h"
#include "plumb/model/stack.h"
#include "plumb/nn/linear.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/nn/pooling.h"

namespace plumb {

/// Reads only the source side of batches. Parameters: src_embed.weight, encoder.layers.i.{self_attn, linear1, linear2,
/// norm1, norm2}, encoder.norm, pooler.weight and pooler.bias if there is a pooler, and output.weight, output.bias.
/// With pooling "none" it predicts a token for each token, like a masked language model; the output layer is then like
/// that of a Decoder, and may share the embedding. With config.output_transform, transform.weight, transform.bias and
/// transform_norm precede it (BERT's prediction head, Devlin et al. 2019).
class Encoder final : public Model, public Classifies, public Embeds {
 public:
  /// Builds the model with all parameters 0; `type` is at::kFloat or at::kDouble. Throws Error if the configuration is
  /// invalid or of another kind.
  explicit Encoder(const ModelConfig& config, at::ScalarType type = at::kFloat);

  Tensor hidden(const std::vector<int64_t>& tokens, const std::vector<int64_t>& segments, const Ragged& layout,
                ForwardContext& context) override;

  /// One row per sequence: the pooled hidden states, through tanh(W·x + b) if there is a pooler. With pooling "none",
  /// one row per token or, if given, per entry of Batch::predicted_positions, through norm(gelu(W·x + b)) if there is a
  /// transform.
  Tensor states(const Batch& batch, ForwardContext& context) override;

  Tensor class_logits(const Batch& batch) override;
  [[nodiscard]] int64_t labels() const override { return config().labels; }
  Classifies* classifies() override { return config().pooling == "none" ? nullptr : this; }
  Embeds* embeds() override { return this; }

 private:
  [[nodiscard]] bool profiled() const override { return stack_->profiled(); }
  void divide_layers(LayerDivision& division) override {
    embedding_->divide(division);
    stack_->divide(division);
  }

  std::unique_ptr<TokenEmbedding> embedding_;
  std::unique_ptr<Stack> stack_;
  Pooling pooling_;
  Linear pooler_;     // (d_model, pooled features), or absent
  Linear transform_;  // (d_model, d_model), or absent, like the next
  std::unique_ptr<Norm> transform_norm_;
};

}  // namespace plumb
