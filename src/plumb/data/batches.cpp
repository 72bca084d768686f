#include "plumb/data/batches.h"

#include <fmt/format.h>

#include <numeric>

#include "plumb/base/error.h"
#include "plumb/base/random.h"

namespace plumb {
namespace {

using Costs = std::span<const ExampleCost>;

/// All examples, sorted by length; `shuffle` determines the order among equal lengths.
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

/// Cuts an order into consecutive batches, each as large as `tokens` allows.
std::vector<std::vector<int64_t>> cut(Costs costs, const std::vector<int64_t>& order, int64_t tokens) {
  if (tokens <= 0) throw Error(fmt::format("batch_tokens must be at least 1, not {}", tokens));
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

void require_fits(int64_t example, const ExampleCost& cost, int64_t tokens) {
  if (cost.larger() <= tokens) return;
  throw Error(fmt::format("example {} has {} tokens, more than fit into a batch of {}", example, cost.larger(), tokens),
              "increase the batch size, or prepare the data with a smaller --length-limit");
}

std::vector<std::vector<int64_t>> plan_batches(Costs costs, int64_t tokens, uint64_t seed, int64_t epoch) {
  Random random(seed, stream_of("batches") + static_cast<uint64_t>(epoch));
  // Shuffles examples of equal length, so that batches differ from epoch to epoch.
  const std::vector<int64_t> order = by_length(costs, [&](std::vector<int64_t>& all) { random.shuffle(all); });
  if (!order.empty()) require_fits(order.back(), costs[static_cast<size_t>(order.back())], tokens);
  auto batches = cut(costs, order, tokens);
  random.shuffle(batches);
  return batches;
}

std::vector<std::vector<int64_t>> divide_batch(Costs costs, const std::vector<int64_t>& examples, int64_t tokens) {
  if (tokens == 0 || examples.empty()) return {examples};
  auto parts = cut(costs, examples, tokens);
  const size_t fewest = parts.size();
  // Bisection: the smallest limit that needs no more parts.
  for (int64_t enough = tokens, less = 0; enough - less > 1;) {
    const int64_t middle = less + (enough - less) / 2;
    auto other = cut(costs, examples, middle);
    if (other.size() > fewest) {
      less = middle;
    } else {
      enough = middle;
      parts = std::move(other);
    }
  }
  return parts;
}

std::vector<std::vector<int64_t>> plan_evaluation_batches(Costs costs, int64_t tokens) {
  return cut(costs, by_length(costs, [](std::vector<int64_t>&) {}), tokens);
}

}  // namespace plumb
