// The arithmetic that a model needs for a batch, counted from its shapes.
#pragma once

#include "plumb/base/batch.h"
#include "plumb/model/model.h"

namespace plumb {

/// Whether the parameter is a weight matrix that each token is multiplied by, with 2 operations per element.
bool multiplies_each_token(const Parameter& parameter);

/// Floating-point operations of a model, as model FLOPs utilization counts them (Chowdhery et al. 2022, arXiv
/// 2204.02311, appendix B): 2 per element of a weight matrix and token that it is applied to, 2 per
/// element of the output matrix, and of a pooler or transform before it, and label, and 4·heads·head_size per pair of
/// query and key that softmax attention forms. Norms, embeddings, activation functions and the recurrences of other
/// attentions count nothing.
class FlopCounter {
 public:
  /// Sums up the matrices of the model, whose shapes do not change.
  explicit FlopCounter(const Model& model);

  /// Of a forward pass. Forward and backward pass together are three times as many.
  [[nodiscard]] double forward(const Batch& batch) const;

 private:
  // Multiplications with an addition each, per token and per label, and per pair in all layers of a stack.
  double source_ = 0, target_ = 0, label_ = 0;
  double encoder_pair_ = 0, decoder_pair_ = 0;
  bool crosses_ = false;  // whether the decoder reads the encoder
};

}  // namespace plumb
