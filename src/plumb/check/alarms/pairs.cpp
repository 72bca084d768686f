// Whether targets belong to their sources.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "plumb/model/kind.h"
#include "plumb/train/alarm.h"

namespace plumb::check {
namespace {

constexpr int64_t kMostPairs = 4000;   // looked at
constexpr int64_t kFewestPairs = 100;  // below, chance decides

/// Pearson's correlation of the two sides' lengths; NaN if a side has only one length.
double correlation_of_lengths(const Dataset& dataset, int64_t count) {
  double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  for (int64_t i = 0; i < count; ++i) {
    const ExampleCost cost = dataset.cost(i);
    const auto a = static_cast<double>(cost.source), b = static_cast<double>(cost.target);
    n += 1, x += a, y += b, xx += a * a, yy += b * b, xy += a * b;
  }
  return (n * xy - x * y) / std::sqrt((n * xx - x * x) * (n * yy - y * y));
}

/// How often tokens of the two sides occur in the same pair: p(t | s) of IBM Model 1 after its first iteration (Brown
/// et al. 1993, Computational Linguistics 19(2)), with s's share of a target token in proportion to 1/(source tokens).
class Occurrences {
 public:
  void add(const Batch& pair) {
    const double share = 1 / static_cast<double>(pair.source.size());
    for (const int64_t s : pair.source) {
      for (const int64_t t : pair.labels) joint_[key(s, t)] += share;
      of_source_[s] += share * static_cast<double>(pair.labels.size());
    }
  }

  /// Σ_t log of the mean over s of p(t | s).
  [[nodiscard]] double log_likelihood(const std::vector<int64_t>& source, const std::vector<int64_t>& target) const {
    constexpr double kUnseen = 1e-4;  // of a token that never occurred with s
    double sum = 0;
    for (const int64_t t : target) {
      double p = 0;
      for (const int64_t s : source) {
        const auto joint = joint_.find(key(s, t));
        if (joint != joint_.end()) p += joint->second / of_source_.at(s);
      }
      sum += std::log(p / static_cast<double>(source.size()) + kUnseen);
    }
    return sum;
  }

 private:
  static uint64_t key(int64_t s, int64_t t) { return static_cast<uint64_t>(s) << 32 | static_cast<uint64_t>(t); }

  std::unordered_map<uint64_t, double> joint_;
  std::unordered_map<int64_t, double> of_source_;
};

/// The share of pairs whose own source explains the target better than the next pair's does: half of the pairs count
/// occurrences, and the others are asked.
double share_that_fits(const Dataset& dataset, int64_t count) {
  Occurrences occurrences;
  std::vector<Batch> asked;
  for (int64_t i = 0; i < count; ++i) {
    Batch pair = dataset.batch({&i, 1});
    if (pair.source.empty() || pair.labels.empty()) continue;
    if (i % 2 == 0)
      occurrences.add(pair);
    else
      asked.push_back(std::move(pair));
  }
  double fits = 0;
  for (size_t i = 0; i < asked.size(); ++i) {
    const std::vector<int64_t>& target = asked[i].labels;
    const double own = occurrences.log_likelihood(asked[i].source, target);
    const double other = occurrences.log_likelihood(asked[(i + 1) % asked.size()].source, target);
    fits += own > other ? 1 : own == other ? 0.5 : 0;
  }
  return fits / static_cast<double>(asked.size());
}

std::vector<Finding> measure_pairs(const PlannedRun& planned) {
  if (!kind_of(planned.model.config()).translates()) return {};
  const int64_t count = std::min(kMostPairs, planned.train.size());
  if (count < kFewestPairs) return {};
  const double lengths = correlation_of_lengths(planned.train, count);
  // Shuffled pairs have a half, with a standard error of at most 0.07 for the fewest pairs.
  Finding finding{.value = share_that_fits(planned.train, count), .threshold = 0.65};
  // Long targets of long sources belong together even if no word of one side predicts one of the other.
  finding.raised = finding.value < finding.threshold && !(lengths > 0.3);
  finding.text = fmt::format(
      "the source explains its target better than the next pair's source does in {:.3g}% of {} pairs, where chance is "
      "50%; the correlation of their lengths is {:.2g}",
      100 * finding.value, count, lengths);
  finding.advice = "check that line i of the targets translates line i of the sources";
  return {finding};
}

[[maybe_unused]] const bool kPairsAlarm =
    alarms().add("pairs", "whether targets belong to their sources",
                 "Brown et al. 1993, Computational Linguistics 19(2)", {measure_pairs});

}  // namespace
}  // namespace plumb::check
