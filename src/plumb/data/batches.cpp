#include "plumb/data/batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "plumb/base/error.h"
#include "plumb/base/random.h"

namespace plumb {
namespace {

struct Cost {
  int64_t source = 0;
  int64_t target = 0;
  [[nodiscard]] int64_t larger() const { return std::max(source, target); }
};

Cost cost(const ParallelSplit& split, int64_t i) {
  const int64_t end = split.running_text() ? 0 : 1;
  return {static_cast<int64_t>(split.source(i).size()) + 1, static_cast<int64_t>(split.target(i).size()) + end};
}

// Sorts by length; pairs of equal length keep their order.
void sort_by_length(const ParallelSplit& split, std::vector<int64_t>& order) {
  std::vector<int64_t> length(order.size());
  for (const int64_t i : order) length[static_cast<size_t>(i)] = cost(split, i).larger();
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return length[static_cast<size_t>(a)] < length[static_cast<size_t>(b)];
  });
}

// Cuts an order into batches, each as large as `tokens` allows.
std::vector<std::vector<int64_t>> cut(const ParallelSplit& split, const std::vector<int64_t>& order, int64_t tokens) {
  if (tokens <= 0) throw Error(fmt::format("a batch of {} tokens is impossible", tokens));
  std::vector<std::vector<int64_t>> batches;
  Cost sum;
  for (const int64_t i : order) {
    const Cost one = cost(split, i);
    const Cost both = {sum.source + one.source, sum.target + one.target};
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

std::vector<int64_t> all_examples(const ParallelSplit& split) {
  std::vector<int64_t> order(static_cast<size_t>(split.size()));
  std::iota(order.begin(), order.end(), int64_t{0});
  return order;
}

}  // namespace

std::vector<std::vector<int64_t>> plan_batches(const ParallelSplit& split, int64_t tokens, uint64_t seed,
                                               int64_t epoch) {
  std::vector<int64_t> order = all_examples(split);
  Random random(seed, stream_of("batches") + static_cast<uint64_t>(epoch));
  // Shuffled before the stable sort: which pairs of equal length meet in a batch differs from epoch to epoch.
  random.shuffle(order);
  sort_by_length(split, order);
  if (!order.empty()) {
    const int64_t longest = cost(split, order.back()).larger();
    if (longest > tokens) {
      throw Error(fmt::format("pair {} has {} tokens, more than a batch of {}", order.back(), longest, tokens),
                  "raise the batch's tokens, or prepare the data with a smaller --length-limit");
    }
  }
  auto batches = cut(split, order, tokens);
  random.shuffle(batches);
  return batches;
}

std::vector<std::vector<int64_t>> plan_evaluation_batches(const ParallelSplit& split, int64_t tokens) {
  std::vector<int64_t> order = all_examples(split);
  sort_by_length(split, order);
  return cut(split, order, tokens);
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
