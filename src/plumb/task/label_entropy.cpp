#include "plumb/task/label_entropy.h"

#include <cmath>
#include <map>

namespace plumb {
namespace {

constexpr int64_t kBatchTokens = 8192;

}  // namespace

double label_entropy(const Dataset& dataset) {
  const std::optional<StreamCut> cut = dataset.stream();
  std::map<int64_t, double> weights;  // by label
  double sum = 0;
  for (const std::vector<int64_t>& examples :
       cut ? cut_stream(dataset.size(), *cut) : plan_evaluation_batches(dataset.costs(), kBatchTokens)) {
    const Batch batch = dataset.batch(examples);
    for (size_t i = 0; i < batch.labels.size(); ++i) {
      const double weight = batch.weights.empty() ? 1.0 : batch.weights[i];
      weights[batch.labels[i]] += weight;
      sum += weight;
    }
  }
  double entropy = 0;
  for (const auto& [label, weight] : weights) {
    if (weight > 0) entropy -= weight / sum * std::log(weight / sum);
  }
  return entropy;
}

}  // namespace plumb
