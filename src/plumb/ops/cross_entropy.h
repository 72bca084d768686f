// Softmax cross-entropy with label smoothing (Szegedy et al. 2016, arXiv 1512.00567).
#pragma once

#include <vector>

#include "plumb/ops/number.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Sums over the labels of a batch, each counted by its weight.
struct CrossEntropy {
  Tensor loss;  // scalar, differentiable: scale · Σ weight·[(1 − ε)·nll + ε·mean over the vocabulary of −log p]
  Number nll;  // Σ −weight·log p(label), without scale
};

/// From logits (tokens, vocabulary), one label per row. `weights`: one per label, or empty for 1 each; a row of weight
/// 0 plays no part, whatever its logits. Differentiable twice; the logits are kept for it. Throws Error if labels or
/// weights do not match the logits.
CrossEntropy cross_entropy(const Tensor& logits, const std::vector<int64_t>& labels, const std::vector<double>& weights,
                           double smoothing, double scale);

/// cross_entropy(hidden·Wᵀ + bias), for training: works through the tokens in chunks, forms the gradients of hidden, W
/// and bias on the way and never holds more than a chunk of logits. hidden: (tokens, d); weight: (vocabulary, d); bias:
/// (vocabulary) or undefined. The gradient can be differentiated again only through the other form: asking for it
/// throws Error.
CrossEntropy linear_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& bias,
                                  const std::vector<int64_t>& labels, const std::vector<double>& weights,
                                  double smoothing, double scale);

}  // namespace plumb::ops
