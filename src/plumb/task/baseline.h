// What a model can reach that has learned only how frequent each label is.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/task/dataset.h"

namespace plumb {

/// The losses of a model that ignores its input, from the frequencies p of labels, each weighted as in the loss. In
/// nats per label; 0 without labels.
class LabelBaseline {
 public:
  /// `classes`: V, which is at least the largest label + 1.
  explicit LabelBaseline(int64_t classes = 0) : weights_(static_cast<size_t>(classes)) {}

  void add(const Batch& batch);

  /// How many labels have been added.
  [[nodiscard]] int64_t labels() const { return labels_; }

  /// The entropy −Σ p ln p. No constant prediction has a smaller negative log-likelihood on these labels, not even one
  /// that was fitted to them; so a model that is not below it on them has failed.
  [[nodiscard]] double nll() const { return loss(0); }

  /// The mean −log m of the labels of these batches, which may be others: the negative log-likelihood of the constant
  /// prediction that is best under label smoothing, see `loss`. Labels that were never added are left out.
  [[nodiscard]] double nll_on(const std::vector<Batch>& batches, double label_smoothing) const;

  /// The smallest label-smoothed loss (ops/cross_entropy.h) of a constant prediction q. The loss of a label is
  /// (1 − ε)·(−log q(label)) + ε/V·Σ −log q, whose mean over the labels is the cross-entropy of q with
  /// m = (1 − ε)·p + ε/V. It is smallest for q = m, where it is the entropy of m.
  [[nodiscard]] double loss(double label_smoothing) const;

 private:
  std::vector<double> weights_;  // by label
  double sum_ = 0;
  int64_t labels_ = 0;
};

/// Of the labels of a split. Of a large one, evenly spaced examples with about as many labels as `most` are enough; a
/// stream is read whole.
LabelBaseline label_baseline(const Dataset& dataset, int64_t classes = 0, int64_t most = int64_t{1} << 50);

}  // namespace plumb
