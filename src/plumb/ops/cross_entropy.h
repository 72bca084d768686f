// Softmax cross-entropy with label smoothing (Szegedy et al. 2016, arXiv 1512.00567).
#pragma once

#include <vector>

#include "plumb/ops/device_scalar.h"
#include "plumb/ops/torch.h"

namespace plumb::ops {

/// Weighted sums over the labels of a batch.
struct CrossEntropy {
  Tensor loss;  // scalar, differentiable: scale · Σ weight·[(1 − ε)·nll + ε·mean over the vocabulary of −log p]
  DeviceScalar nll;  // Σ −weight·log p(label), without scale
};

/// Throws Error unless there is one label of the vocabulary per token, and one weight, or none at all.
void require_labels(const std::vector<int64_t>& labels, const std::vector<double>& weights, int64_t tokens,
                    int64_t vocabulary);

/// From logits (tokens, vocabulary), with one label per row. `weights`: one per label, or empty for all 1; a row with
/// weight 0 is ignored, even if its logits are NaN. Twice differentiable; keeps the logits for the backward pass.
/// Throws Error if labels or weights do not match the logits.
CrossEntropy cross_entropy(const Tensor& logits, const std::vector<int64_t>& labels, const std::vector<double>& weights,
                           double smoothing, double scale);

/// cross_entropy(hidden·Wᵀ + bias), for training. With the CPU kernels, processes the tokens in chunks, computes the
/// gradients of hidden, W and bias along the way, and never holds more than a chunk of logits; second derivatives then
/// throw Error: use cross_entropy() for them. hidden: (tokens, d); weight: (vocabulary, d); bias: (vocabulary) or
/// undefined.
CrossEntropy linear_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& bias,
                                  const std::vector<int64_t>& labels, const std::vector<double>& weights,
                                  double smoothing, double scale);

/// Rows of logits in a chunk: about 64 MB in float32, but 64 to 512 rows. Enough for efficient products, and for few
/// passes over the gradient of a large weight, to which every chunk adds.
int64_t chunk_rows(int64_t vocabulary);

}  // namespace plumb::ops
