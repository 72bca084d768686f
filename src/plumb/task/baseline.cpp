#include "plumb/task/baseline.h"

#include <cmath>

namespace plumb {
namespace {

constexpr int64_t kBatchTokens = 8192;

}  // namespace

void LabelBaseline::add(const Batch& batch) {
  for (size_t i = 0; i < batch.labels.size(); ++i) {
    const double weight = batch.weights.empty() ? 1.0 : batch.weights[i];
    if (weight <= 0) continue;
    const auto label = static_cast<size_t>(batch.labels[i]);
    if (label >= weights_.size()) weights_.resize(label + 1);
    weights_[label] += weight;
    sum_ += weight;
    ++labels_;
  }
}

double LabelBaseline::nll_on(const std::vector<Batch>& batches, double label_smoothing) const {
  const double rest = label_smoothing / static_cast<double>(weights_.size());
  double sum = 0, weight = 0;
  for (const Batch& batch : batches) {
    for (size_t i = 0; i < batch.labels.size(); ++i) {
      const auto label = static_cast<size_t>(batch.labels[i]);
      if (label >= weights_.size() || weights_[label] == 0) continue;
      const double own = batch.weights.empty() ? 1.0 : batch.weights[i];
      sum -= own * std::log((1 - label_smoothing) * weights_[label] / sum_ + rest);
      weight += own;
    }
  }
  return weight > 0 ? sum / weight : 0;
}

double LabelBaseline::loss(double label_smoothing) const {
  if (sum_ <= 0) return 0;
  const double uniform = label_smoothing / static_cast<double>(weights_.size());
  double entropy = 0;
  for (const double weight : weights_) {
    const double mean = (1 - label_smoothing) * weight / sum_ + uniform;
    if (mean > 0) entropy -= mean * std::log(mean);
  }
  return entropy;
}

LabelBaseline label_baseline(const Dataset& dataset, int64_t classes) {
  LabelBaseline baseline(classes);
  const std::optional<StreamCut> cut = dataset.stream();
  for (const std::vector<int64_t>& examples :
       cut ? cut_stream(dataset.size(), *cut) : plan_evaluation_batches(dataset.costs(), kBatchTokens))
    baseline.add(dataset.batch(examples));
  return baseline;
}

}  // namespace plumb
