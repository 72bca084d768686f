#include "plumb/task/dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"

namespace plumb {

std::vector<ExampleCost> Dataset::costs() const {
  std::vector<ExampleCost> all;
  all.reserve(static_cast<size_t>(size()));
  for (int64_t i = 0; i < size(); ++i) all.push_back(cost(i));
  return all;
}

Batch Dataset::drawn(std::span<const int64_t> examples, const Draw&) const { return batch(examples); }

void Dataset::require(int64_t example) const {
  if (example >= 0 && example < size()) return;
  throw Error(fmt::format("example {} is out of range for a split of {}", example, size()));
}

std::vector<Batch> evaluation_batches(const Dataset& dataset, int64_t tokens, int64_t count) {
  std::vector<ExampleCost> costs;
  for (int64_t i = 0; i < (count == 0 ? dataset.size() : std::min(count, dataset.size())); ++i)
    costs.push_back(dataset.cost(i));
  std::vector<Batch> batches;
  for (const std::vector<int64_t>& examples : plan_evaluation_batches(costs, tokens))
    batches.push_back(dataset.batch(examples));
  return batches;
}

}  // namespace plumb
