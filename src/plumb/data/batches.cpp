#include "plumb/data/batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "plumb/base/error.h"
#include "plumb/base/random.h"

namespace plumb {
namespace {

using Costs = std::span<const ExampleCost>;

/// All examples, sorted by length; those of equal length in the order that `shuffle` gives them.
template <typename Shuffle>
std::vector<int64_t> by_length(Costs costs, const Shuffle& shuffle) {
  std::vector<int64_t> order(costs.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  shuffle(order);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return costs[static_cast<size_t>(a)].larger() < costs[static_cast<size_t>(b)].larger();
  });
  return order;
}

/// Cuts an order into batches, each as large as `tokens` allows.
std::vector<std::vector<int64_t>> cut(Costs costs, const std::vector<int64_t>& order, int64_t tokens) {
  if (tokens <= 0) throw Error(fmt::format("a batch of {} tokens is impossible", tokens));
  std::vector<std::vector<int64_t>> batches;
  ExampleCost sum;
  for (const int64_t i : order) {
    const ExampleCost& one = costs[static_cast<size_t>(i)];
    const ExampleCost both = {sum.source + one.source, sum.target + one.target};
    if (batches.empty() || both.larger() > tokens) {
      batches.emplace_back();
      sum = one;
    } else {
      sum = both;
    }
    batches.back().push_back(i);
  }
  return batches;
}

}  // namespace

std::vector<ExampleCost> costs_of(const ParallelSplit& split) {
  const int64_t end = split.running_text() ? 0 : 1;
  std::vector<ExampleCost> costs;
  costs.reserve(static_cast<size_t>(split.size()));
  for (int64_t i = 0; i < split.size(); ++i) {
    costs.push_back({std::ssize(split.source(i)) + 1, std::ssize(split.target(i)) + end});
  }
  return costs;
}

std::vector<std::vector<int64_t>> plan_batches(Costs costs, int64_t tokens, uint64_t seed, int64_t epoch) {
  Random random(seed, stream_of("batches") + static_cast<uint64_t>(epoch));
  // Which examples of equal length meet in a batch differs from epoch to epoch.
  const std::vector<int64_t> order = by_length(costs, [&](std::vector<int64_t>& all) { random.shuffle(all); });
  if (!order.empty()) {
    const int64_t longest = costs[static_cast<size_t>(order.back())].larger();
    if (longest > tokens) {
      throw Error(fmt::format("example {} has {} tokens, more than a batch of {}", order.back(), longest, tokens),
                  "raise the batch's tokens, or prepare the data with a smaller --length-limit");
    }
  }
  auto batches = cut(costs, order, tokens);
  random.shuffle(batches);
  return batches;
}

std::vector<std::vector<int64_t>> plan_evaluation_batches(Costs costs, int64_t tokens) {
  return cut(costs, by_length(costs, [](std::vector<int64_t>&) {}), tokens);
}

std::vector<Batch> evaluation_batches(const ParallelSplit& split, int64_t tokens, int64_t count) {
  std::vector<Batch> batches;
  for (std::vector<int64_t> examples : plan_evaluation_batches(split, tokens)) {
    if (count > 0) std::erase_if(examples, [count](int64_t example) { return example >= count; });
    if (!examples.empty()) batches.push_back(make_batch(split, examples));
  }
  return batches;
}

Batch make_batch(const ParallelSplit& split, std::span<const int64_t> examples) {
  Batch batch;
  for (const int64_t i : examples) {
    if (i < 0 || i >= split.size()) throw Error(fmt::format("there is no pair {} in a split of {}", i, split.size()));
    split.running_text() ? append_running_text(batch, split.target(i), i)
                         : append(batch, split.source(i), split.target(i), i);
  }
  return batch;
}

}  // namespace plumb
