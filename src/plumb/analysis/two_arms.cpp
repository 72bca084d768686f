#include "plumb/analysis/two_arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/random.h"

namespace plumb {
namespace {

constexpr int64_t kFirstLook = 3;
constexpr int64_t kMostPlanned = 50;
constexpr double kPower = 0.8;

/// Mean and variance of a sample; the variance of one value is NaN.
struct Sample {
  double mean = std::nan("");
  double variance = std::nan("");
  double count = 0;
};

Sample sample_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  return {.mean = mean_of(values), .variance = variance_of(values), .count = static_cast<double>(values.size())};
}

/// An estimated gain, its standard error, and the degrees of freedom of that.
struct Gain {
  double mean = 0;
  double error = 0;
  int64_t degrees = 0;
  int64_t seeds = 0;  // of the smaller arm
};

Gain welch(const Sample& baseline, const Sample& arm) {
  const double a = baseline.variance / baseline.count;
  const double b = arm.variance / arm.count;
  const double fewer = std::min(baseline.count, arm.count);
  double degrees = fewer - 1;
  if (baseline.count == arm.count && a + b > 0) degrees = std::floor((a + b) * (a + b) / (a * a + b * b) * degrees);
  return {baseline.mean - arm.mean, std::sqrt(a + b), static_cast<int64_t>(degrees), static_cast<int64_t>(fewer)};
}

/// One run against n: as if the arm that it is of had the deviation of the other, with n − 1 degrees of freedom.
Gain one_against(const Sample& baseline, const Sample& arm) {
  const Sample& many = baseline.count > arm.count ? baseline : arm;
  const auto runs = static_cast<int64_t>(many.count);
  return {baseline.mean - arm.mean, std::sqrt(many.variance * (1 + 1 / many.count)), runs - 1, runs};
}

std::vector<double> counted_losses(std::vector<double> losses, double most) {
  for (double& loss : losses) loss = std::min(loss, most);
  return losses;
}

bool all_equal(const std::vector<double>& values) {
  return values.size() > 1 && std::equal(values.begin() + 1, values.end(), values.begin());
}

Interval interval_of(const Gain& gain, double level) {
  if (gain.seeds < 2) return {gain.mean, std::nan(""), std::nan(""), gain.seeds};
  const double half = student_t_quantile(1 - level, gain.degrees) * gain.error;
  return {gain.mean, gain.mean - half, gain.mean + half, gain.seeds};
}

/// How far the estimate lies from the end of the region of the verdict that it points to.
double distance_to_verdict(double gain, double margin) {
  return gain > margin ? gain - margin : std::max(margin - gain, -gain);
}

/// `seeds` of the smaller arm, `most` of the larger.
double level_of(const ArmRule& rule, int64_t seeds, int64_t most) {
  if (rule.planned_seeds == 0) return rule.error;
  if (most > rule.planned_seeds)
    throw Error(fmt::format("an arm has {} seeds, and looks were planned up to {}", most, rule.planned_seeds),
                "a plan that grows with the results finds differences where there are none");
  const std::vector<double> levels = look_levels(rule.planned_seeds, rule.error, rule.by_seed);
  return levels.at(static_cast<size_t>(std::max(seeds, kFirstLook) - kFirstLook));
}

}  // namespace

Region gain_region(const ArmRule& rule) { return rule.margin > 0 ? Region::above(rule.margin, 0) : Region::above(0); }

ArmComparison compare_arms(const std::vector<double>& baseline_losses, const std::vector<double>& arm_losses,
                           const ArmRule& rule) {
  const std::vector<double> baseline = counted_losses(baseline_losses, rule.failed_at);
  const std::vector<double> arm = counted_losses(arm_losses, rule.failed_at);
  if (baseline.empty() || arm.empty()) throw Error("an arm has no runs");
  if (rule.by_seed && baseline.size() != arm.size())
    throw Error(
        fmt::format("two arms have {} and {} runs; by seed, both need the same seeds", baseline.size(), arm.size()));
  ArmComparison comparison{.level = level_of(rule, std::min(std::ssize(baseline), std::ssize(arm)),
                                             std::max(std::ssize(baseline), std::ssize(arm)))};
  Gain gain{std::nan(""), std::nan(""), 1, 0};
  bool constant = false;
  if (rule.by_seed) {
    std::vector<double> gains;
    for (size_t i = 0; i < arm.size(); ++i) {
      if (std::isfinite(baseline[i]) && std::isfinite(arm[i])) gains.push_back(baseline[i] - arm[i]);
    }
    const Sample sample = sample_of(gains);
    comparison.deviation = std::sqrt(sample.variance / 2);
    constant = all_equal(gains);
    if (!gains.empty())
      gain = {sample.mean, std::sqrt(sample.variance / sample.count), std::ssize(gains) - 1, std::ssize(gains)};
  } else {
    const std::vector<double> of_baseline = finite_values(baseline);
    const std::vector<double> of_arm = finite_values(arm);
    const Sample first = sample_of(of_baseline);
    const Sample second = sample_of(of_arm);
    comparison.one_run = rule.planned_seeds == 0 && std::min(first.count, second.count) == 1 &&
                         std::min(baseline.size(), arm.size()) == 1 && std::max(first.count, second.count) >= 3;
    comparison.deviation = comparison.one_run ? std::sqrt(std::fmax(first.variance, second.variance))
                                              : std::sqrt((first.variance + second.variance) / 2);
    // Runs that all learned nothing count alike.
    constant = (all_equal(of_baseline) && of_baseline.front() < rule.failed_at) ||
               (all_equal(of_arm) && of_arm.front() < rule.failed_at);
    if (!of_baseline.empty() && !of_arm.empty())
      gain = comparison.one_run ? one_against(first, second) : welch(first, second);
  }
  const double confidence = 1 - 2 * comparison.level;
  const Region region = gain_region(rule);
  comparison.judgment =
      judge_interval(interval_of(gain, comparison.level), region,
                     fmt::format("{:.3g}% interval{}", 100 * confidence, comparison.one_run ? " of one new run" : ""));
  if (gain.seeds == 1) comparison.judgment.reason = "one run says nothing about luck: repeat it with two more seeds";
  if (constant)
    comparison.judgment = undecided_because(comparison.judgment,
                                            "runs are equal to the last digit, as if repeated with "
                                            "one seed: their noise is not known");
  comparison.judgment =
      with_failed_runs(std::move(comparison.judgment), baseline, arm, region, 1 - comparison.level, rule.failed_at);
  const auto failed = [](const std::vector<double>& losses) {
    return std::any_of(losses.begin(), losses.end(), [](double loss) { return !std::isfinite(loss); });
  };
  // More seeds would not tell.
  if (constant || failed(baseline) || failed(arm)) comparison.deviation = std::nan("");
  return comparison;
}

std::optional<int64_t> seeds_needed(const ArmComparison& comparison, const ArmRule& rule) {
  if (comparison.judgment.outcome != Outcome::undecided || !(comparison.deviation > 0)) return std::nullopt;
  constexpr int64_t kMost = 1000;
  const double distance = distance_to_verdict(comparison.judgment.effect.mean, rule.margin);
  const auto enough = [&](int64_t seeds) {
    const int64_t degrees = rule.by_seed ? seeds - 1 : 2 * seeds - 2;
    const double quantiles = student_t_quantile(1 - comparison.level, degrees) + student_t_quantile(kPower, degrees);
    return distance >= quantiles * comparison.deviation * std::sqrt(2 / static_cast<double>(seeds));
  };
  if (!enough(kMost)) return std::nullopt;
  int64_t low = kFirstLook - 1;
  int64_t high = kMost;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

std::vector<double> look_levels(int64_t planned_seeds, double error, bool by_seed) {
  if (planned_seeds < kFirstLook || planned_seeds > kMostPlanned)
    throw Error(fmt::format("{} planned seeds", planned_seeds), fmt::format("plan {} to {}", kFirstLook, kMostPlanned));
  constexpr size_t kPairs = 200'000;
  struct Sums {
    double first = 0, first_squares = 0, second = 0, second_squares = 0;
  };
  std::vector<Sums> pairs(kPairs);
  Random random(1, "looks at equal arms");
  std::vector<double> levels;
  std::vector<double> statistics;  // of the pairs that no look has called different
  double spent = 0;
  for (int64_t n = 1; n <= planned_seeds; ++n) {
    const auto seeds = static_cast<double>(n);
    statistics.clear();
    for (Sums& sums : pairs) {
      const double a = random.normal();
      const double b = by_seed ? 0 : random.normal();
      sums.first += a;
      sums.first_squares += a * a;
      sums.second += b;
      sums.second_squares += b * b;
      if (n < kFirstLook) continue;
      // Both samples have n values, so Welch's statistic is that of the pooled variance.
      const double squares = sums.first_squares - sums.first * sums.first / seeds + sums.second_squares -
                             sums.second * sums.second / seeds;
      statistics.push_back((sums.first - sums.second) / seeds / std::sqrt(squares / (seeds - 1) / seeds));
    }
    if (n < kFirstLook) continue;
    const double may_spend = error * std::pow(seeds / static_cast<double>(planned_seeds), 3);
    const auto called = static_cast<size_t>(std::llround((may_spend - spent) * static_cast<double>(kPairs)));
    spent = may_spend;
    std::vector<double> sorted = statistics;
    const auto threshold = sorted.begin() + static_cast<std::ptrdiff_t>(called);
    std::nth_element(sorted.begin(), threshold, sorted.end(), std::greater<>());
    const double t = *threshold;
    levels.push_back((1 - student_t_coverage(t, by_seed ? n - 1 : 2 * n - 2)) / 2);
    size_t kept = 0;
    for (size_t i = 0; i < pairs.size(); ++i) {
      if (statistics[i] <= t) pairs[kept++] = pairs[i];
    }
    pairs.resize(kept);
  }
  return levels;
}

double noise_floor(const std::vector<std::vector<double>>& groups) {
  double squares = 0;
  int64_t degrees = 0;
  for (const std::vector<double>& group : groups) {
    const std::vector<double> values = finite_values(group);
    if (values.size() < 2) continue;
    squares += sample_of(values).variance * static_cast<double>(values.size() - 1);
    degrees += std::ssize(values) - 1;
  }
  if (degrees == 0) return std::nan("");
  constexpr double kUpper = 0.975;
  return student_t_quantile(kUpper, degrees) * std::sqrt(2 * squares / static_cast<double>(degrees));
}

}  // namespace plumb
