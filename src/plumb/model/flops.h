// The arithmetic cost of a model on a batch, counted from its shapes.
#pragma once

#include "plumb/base/batch.h"
#include "plumb/model/model.h"

namespace plumb {

/// Whether the parameter is a weight matrix applied to each token, at 2 operations per element.
bool multiplies_each_token(const Parameter& parameter);

/// Floating-point operations of a model, as model FLOPs utilization counts them (Chowdhery et al. 2022, arXiv
/// 2204.02311, appendix B): 2 per element of a layer's weight matrix and token; 2 per element of the output matrix, and
/// of a pooler or transform before it, and label; and 4·heads·head_size per query-key pair of softmax attention, of
/// which causal attention counts half. The matrix of Transformer-XL's distances counts per token like the others, as in
/// 6·N. Norms, embeddings, activation functions and the recurrences of other attentions are not counted.
class FlopCounter {
 public:
  /// Sums up the matrices of the model, whose shapes do not change.
  explicit FlopCounter(const Model& model);

  /// The operations of a forward pass; forward and backward together take three times as many.
  [[nodiscard]] double forward(const Batch& batch) const;

 private:
  // Multiply-adds per source token, target token and label, and per query-key pair in all layers of a stack.
  double source_ = 0, target_ = 0, label_ = 0;
  double encoder_pair_ = 0, decoder_pair_ = 0;
  bool crosses_ = false;  // whether the decoder reads the encoder
};

}  // namespace plumb
