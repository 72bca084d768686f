// Equal examples within the training data, and validation examples that occur in it.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_set>

#include "plumb/train/alarm.h"

namespace plumb::check {
namespace {

constexpr int64_t kMostTraining = 50'000;  // looked at
constexpr int64_t kMostValidation = 2'000;

/// A hash of all that the model reads and predicts.
uint64_t hash_of(const Dataset& dataset, int64_t example) {
  const Batch batch = dataset.batch({&example, 1});
  uint64_t hash = 0;
  for (const std::vector<int64_t>* part : {&batch.source, &batch.target_input, &batch.labels}) {
    const std::string_view bytes(reinterpret_cast<const char*>(part->data()), part->size() * sizeof(int64_t));
    hash = (hash ^ std::hash<std::string_view>{}(bytes)) * 0x9E3779B97F4A7C15U;
  }
  return hash;
}

std::vector<Finding> measure_duplicates(const PlannedRun& planned) {
  const Dataset& train = planned.train;
  if (train.stream() || train.size() < 2) return {};
  const int64_t count = std::min(kMostTraining, train.size());
  std::unordered_set<uint64_t> seen;
  for (int64_t i = 0; i < count; ++i) seen.insert(hash_of(train, i));
  const auto share = [](int64_t some, int64_t all) { return static_cast<double>(some) / static_cast<double>(all); };
  // Short sentences recur in any corpus, a tenth to a third of all; more than half is a corpus that was joined with
  // itself.
  Finding within{.value = share(count - std::ssize(seen), count), .threshold = 0.45};
  within.raised = within.value > within.threshold;
  within.text = fmt::format("{:.3g}% of {} training examples repeat an earlier one", 100 * within.value, count);
  within.advice = "training data without repetitions: an epoch is longer than what it teaches";
  std::vector<Finding> findings = {within};
  if (!planned.task.data().has_split("valid")) return findings;
  const auto valid = planned.task.dataset("valid");
  if (valid->stream() || valid->size() == 0) return findings;
  const int64_t asked = std::min(kMostValidation, valid->size());
  int64_t known = 0;
  for (int64_t i = 0; i < asked; ++i) known += seen.count(hash_of(*valid, i)) > 0 ? 1 : 0;
  Finding across{.where = "valid", .value = share(known, asked), .threshold = 0.2};
  across.raised = across.value > across.threshold;
  across.text =
      fmt::format("{:.3g}% of {} validation examples occur among the training examples", 100 * across.value, asked);
  across.advice = "validation data that are not trained on: its loss does not show what the model learns";
  findings.push_back(across);
  return findings;
}

[[maybe_unused]] const bool kDuplicatesAlarm =
    alarms().add("duplicates", "equal training examples, and validation examples among them",
                 "Lee et al. 2022, arXiv 2107.06499", {measure_duplicates});

}  // namespace
}  // namespace plumb::check
