// Softmax cross-entropy with label smoothing (Szegedy et al. 2016, arXiv 1512.00567).
#pragma once

#include <vector>

#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Sums over the tokens of a batch.
struct CrossEntropy {
  Tensor loss;  // scalar, differentiable: scale · Σ [(1 − ε)·nll + ε·mean over the vocabulary of −log p]
  double nll;   // Σ −log p(label), without scale
};

/// From logits (tokens, vocabulary). Differentiable twice; the logits are kept for it.
CrossEntropy cross_entropy(const Tensor& logits, const std::vector<int64_t>& labels, double smoothing, double scale);

/// cross_entropy(hidden·Wᵀ), for training: works through the tokens in chunks, forms the gradients of hidden and W on
/// the way and never holds more than a chunk of logits. hidden: (tokens, d); weight: (vocabulary, d). The gradient can
/// be differentiated again only through the other form: asking for it throws Error.
CrossEntropy linear_cross_entropy(const Tensor& hidden, const Tensor& weight, const std::vector<int64_t>& labels,
                                  double smoothing, double scale);

}  // namespace plumb::ops
