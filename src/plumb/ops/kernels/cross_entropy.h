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

/// The loss of one row.
RowLoss<float> cross_entropy_loss(const CrossEntropyRow<float>& row, const float* logits);
RowLoss<double> cross_entropy_loss(const CrossEntropyRow<double>& row, const double* logits);

/// out = scale · (softmax(logits) − target distribution); out may be logits.
void cross_entropy_gradient(const CrossEntropyRow<float>& row, const float* logits, float log_partition, float scale,
                            float* out);
void cross_entropy_gradient(const CrossEntropyRow<double>& row, const double* logits, double log_partition,
                            double scale, double* out);

/// The loss, and that gradient in place of the logits: with one exponential for both.
RowLoss<float> cross_entropy_with_gradient(const CrossEntropyRow<float>& row, float scale, float* logits);
RowLoss<double> cross_entropy_with_gradient(const CrossEntropyRow<double>& row, double scale, double* logits);

/// From the cotangent c of that gradient: out = scale · p∘(c − Σ c∘p), p = softmax(logits). Returns Σ c∘(p − target),
/// the cotangent of `scale`.
float cross_entropy_curvature(const CrossEntropyRow<float>& row, const float* logits, float log_partition, float scale,
                              const float* c, float* out);
double cross_entropy_curvature(const CrossEntropyRow<double>& row, const double* logits, double log_partition,
                               double scale, const double* c, double* out);

}  // namespace plumb::kernels
