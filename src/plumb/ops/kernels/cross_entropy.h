// Softmax cross-entropy with label smoothing over rows of logits; forward, gradient in place, and its derivative.
#pragma once

#include <cstdint>

namespace plumb::kernels {

/// The target distribution of a row with label t: (1 − ε) at t plus ε/V everywhere.
template <typename T>
struct CrossEntropyRow {
  int64_t vocabulary;
  int64_t label;
  T smoothing;
};

template <typename T>
struct RowLoss {
  T nll;            // −log p(label)
  T smoothed;       // (1 − ε)·nll + ε·mean over the vocabulary of −log p
  T log_partition;  // log Σ exp(logit)
};

template <typename T>
struct CrossEntropyKernels {
  /// The loss of one row.
  RowLoss<T> (*loss)(const CrossEntropyRow<T>& row, const T* logits);
  /// out = scale · (softmax(logits) − target distribution); out may be logits.
  void (*gradient)(const CrossEntropyRow<T>& row, const T* logits, T log_partition, T scale, T* out);
  /// The loss, and that gradient in place of the logits: with one exponential for both.
  RowLoss<T> (*with_gradient)(const CrossEntropyRow<T>& row, T scale, T* logits);
  /// From the cotangent c of that gradient: out = scale · p∘(c − Σ c∘p), p = softmax(logits). Returns Σ c∘(p − target),
  /// the cotangent of `scale`.
  T (*curvature)(const CrossEntropyRow<T>& row, const T* logits, T log_partition, T scale, const T* c, T* out);
};

/// Those of the instructions in use.
template <typename T>
const CrossEntropyKernels<T>& cross_entropy();

}  // namespace plumb::kernels
