#include "plumb/data/batch_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/permutation.h"
#include "plumb/base/random.h"

namespace plumb {

BatchPlan::BatchPlan(const ExampleCosts& costs, const PlanSettings& settings, int64_t epoch)
    : costs_(costs), settings_(settings), epoch_(epoch) {
  if (settings.mixture && settings.mixture->size() != costs.size())
    throw Error(fmt::format("corpora of {} examples in a training set of {}", settings.mixture->size(), costs.size()));
  const bool whole = settings.stream || costs.size() <= settings.largest;
  const int64_t windows = whole ? 1 : (costs.size() + settings.window - 1) / settings.window;
  for (int64_t number = 0; number < windows; ++number) {
    auto batches = std::make_shared<const Batches>(planned(number, windows));
    first_.push_back(first_.back() + std::ssize(*batches));
    if (number < 2) cache_[static_cast<size_t>(number)] = {number, std::move(batches)};
  }
}

BatchPlan::Batches BatchPlan::planned(int64_t number, int64_t windows) const {
  if (settings_.stream) return cut_stream(costs_.size(), *settings_.stream, settings_.seed, epoch_);
  std::vector<ExampleCost> sizes;
  const bool whole = windows == 1;
  if (whole && !settings_.mixture) {
    sizes.reserve(static_cast<size_t>(costs_.size()));
    for (int64_t i = 0; i < costs_.size(); ++i) sizes.push_back(costs_[i]);
    return plan_batches(sizes, settings_.tokens, settings_.seed, epoch_);
  }
  const Permutation order(costs_.size(), settings_.seed, stream_of("windows") + static_cast<uint64_t>(epoch_));
  const int64_t begin = whole ? 0 : number * settings_.window;
  const int64_t end = whole ? costs_.size() : std::min(begin + settings_.window, costs_.size());
  std::vector<int64_t> examples;
  examples.reserve(static_cast<size_t>(end - begin));
  sizes.reserve(static_cast<size_t>(end - begin));
  for (int64_t place = begin; place < end; ++place) {
    const int64_t draw = whole ? place : order(place);
    examples.push_back(settings_.mixture ? settings_.mixture->example(epoch_, draw) : draw);
    sizes.push_back(costs_[examples.back()]);
    require_fits(examples.back(), sizes.back(), settings_.tokens);
  }
  const auto words = philox(settings_.seed, stream_of("window seeds"), static_cast<uint64_t>(number));
  const uint64_t seed = whole ? settings_.seed : static_cast<uint64_t>(words[0]) << 32 | words[1];
  Batches batches = plan_batches(sizes, settings_.tokens, seed, epoch_);
  for (auto& batch : batches) {
    for (int64_t& example : batch) example = examples[static_cast<size_t>(example)];
  }
  return batches;
}

std::shared_ptr<const BatchPlan::Batches> BatchPlan::window(int64_t number) const {
  const std::lock_guard lock(mutex_);
  if (cache_[1].number == number) std::swap(cache_[0], cache_[1]);
  if (cache_[0].number != number) {
    cache_[1] = std::move(cache_[0]);
    cache_[0] = {number, std::make_shared<const Batches>(planned(number, windows()))};
  }
  return cache_[0].batches;
}

BatchPlan::Batches BatchPlan::batches(int64_t first, int64_t count) const {
  Batches result;
  for (int64_t batch = first; batch < std::min(first + count, size()); ++batch) {
    const auto after = std::upper_bound(first_.begin(), first_.end(), batch);
    const auto found = window(std::distance(first_.begin(), after) - 1);
    result.push_back((*found)[static_cast<size_t>(batch - *std::prev(after))]);
  }
  return result;
}

}  // namespace plumb
