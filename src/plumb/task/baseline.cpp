#include "plumb/task/baseline.h"

#include <algorithm>
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

LabelBaseline label_baseline(const Dataset& dataset, int64_t classes, int64_t most) {
  LabelBaseline baseline(classes);
  if (const std::optional<StreamCut> cut = dataset.stream()) {
    for (const std::vector<int64_t>& examples : cut_stream(dataset.size(), *cut)) baseline.add(dataset.batch(examples));
    return baseline;
  }
  // A few examples tell how many labels there are in one.
  int64_t tokens = 0;
  const int64_t few = std::min<int64_t>(dataset.size(), 100);
  for (int64_t i = 0; i < few; ++i) tokens += dataset.cost(i * dataset.size() / few).larger();
  const double enough = static_cast<double>(few * most) / static_cast<double>(std::max<int64_t>(tokens, 1));
  const auto size = static_cast<double>(dataset.size());
  const double count = std::clamp(enough, static_cast<double>(few), size);
  std::vector<int64_t> examples;
  std::vector<ExampleCost> costs;
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
    examples.push_back(static_cast<int64_t>(static_cast<double>(i) * (size / count)));
    costs.push_back(dataset.cost(examples.back()));
  }
  for (std::vector<int64_t>& batch : plan_evaluation_batches(costs, kBatchTokens)) {
    for (int64_t& example : batch) example = examples[static_cast<size_t>(example)];
    baseline.add(dataset.batch(batch));
  }
  return baseline;
}

}  // namespace plumb
