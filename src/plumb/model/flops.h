// The arithmetic cost of a model, counted from its shapes: on a batch, and per token of sequences of a given length.
#pragma once

#include "plumb/base/batch.h"
#include "plumb/model/model.h"
#include "plumb/nn/attention/attention.h"

namespace plumb {

/// Floating-point operations of a model's matrix products in a forward pass: 2 per element of a layer's weight matrix
/// and token; 2 per element of the output matrix, and of a pooler or transform before it, and label; 4·heads·head_size
/// per pair of a query and a key of softmax attention, of which causal attention has half; and for fast weights, 2 per
/// number read from or written to a head's matrix and position (AttentionWork). This is how model FLOPs utilization
/// counts (Chowdhery et al. 2022, arXiv 2204.02311, appendix B), which however has all pairs in causal attention. The
/// matrix of Transformer-XL's distances counts per token like the others, as in 6·N. Norms, embeddings, activation
/// functions and decay are not counted. Forward and backward together take three times as many.
class FlopCounter {
 public:
  /// Of no model: counts nothing.
  FlopCounter() = default;
  /// Sums up the matrices of the model, whose shapes do not change.
  explicit FlopCounter(const Model& model);

  [[nodiscard]] double forward(const Batch& batch) const;

  /// Of all layers' weight matrices, and of all attentions besides, per token of sequences of this length. In a model
  /// with encoder and decoder, a token means one on each side, with sequences of equal length.
  [[nodiscard]] double matrices_per_token() const { return 2 * (source_ + target_); }
  [[nodiscard]] double attention_per_token(int64_t length) const;
  [[nodiscard]] double per_label() const { return 2 * label_; }

 private:
  /// Multiply-adds of all attentions on sequences of these lengths.
  [[nodiscard]] double attention(const Ragged& source, const Ragged& target) const;

  // Multiply-adds of matrices per source token, target token and label.
  double source_ = 0, target_ = 0, label_ = 0;
  AttentionWork work_{};
  double encoder_layers_ = 0, decoder_layers_ = 0;  // with attention
  bool crosses_ = false;                            // whether the decoder reads the encoder
};

}  // namespace plumb
