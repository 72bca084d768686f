#include "plumb/judge/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>

#include "plumb/analysis/holm.h"
#include "plumb/analysis/statistics.h"
#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/terminal.h"
#include "plumb/base/text.h"
#include "plumb/judge/direction.h"

namespace plumb {
namespace {

constexpr const char* kAllTasks = "all tasks";
constexpr const char* kFlips = " flip rate";

/// How a metric's terms give its score. One that Plumb does not have is a mean, of which more is better unless its name
/// says otherwise.
struct Scoring {
  SumScore score = mean_of_sum;
  bool larger_is_better = true;
  bool is_mean = true;
};

Scoring scoring_of(const std::string& metric) {
  const std::string name = metric.substr(0, metric.find_first_of(", "));
  for (const std::string& known : {metric, name}) {
    const auto found = evaluation_metrics().entries().find(known);
    if (found == evaluation_metrics().entries().end()) continue;
    const EvaluationMetric& made = found->second.make;
    return {made.score, made.higher_is_better && !metric.ends_with(kFlips), made.is_mean};
  }
  return {.larger_is_better = !metric.ends_with(kFlips) && larger_is_better_by_name(metric).value_or(true)};
}

/// Whether every item is right or wrong.
bool is_binary(const MetricTerms& terms) {
  return std::all_of(terms.begin(), terms.end(),
                     [](const auto& row) { return row.size() == 1 && (row[0] == 0 || row[0] == 1); });
}

void add_interval(ScoreDifference& difference, const MetricTerms& first, const MetricTerms& second,
                  const SumScore& score, const Resampling& resampling) {
  difference.low = difference.high = std::nan("");
  if (first.size() < 2) return;
  const auto of_first = bootstrap_sums(first, resampling), of_second = bootstrap_sums(second, resampling);
  std::vector<double> samples;  // both drew the same items
  for (size_t i = 0; i < of_first.size(); ++i)
    samples.push_back(score(of_second[i], first.size()) - score(of_first[i], first.size()));
  const SampleInterval interval = interval_of_samples(std::move(samples));
  difference.low = interval.low;
  difference.high = interval.high;
}

/// ((z₁ √v₀ + z₂ √v)/d)², with the variances of an item's difference without and with the effect; z₁ and z₂ are the
/// 97.5% and 80% quantiles of the normal distribution.
std::optional<int64_t> items_for(double mean, double variance) {
  constexpr double kLevel = 1.959964;
  constexpr double kPower = 0.841621;
  if (mean == 0) return std::nullopt;
  const double root = kLevel * std::sqrt(variance + mean * mean) + kPower * std::sqrt(variance);
  const double items = std::ceil(root * root / (mean * mean));
  constexpr double kMost = 1e9;
  return items < kMost ? std::optional(static_cast<int64_t>(items)) : std::nullopt;
}

ScoreDifference difference_of(const std::string& task, const std::string& metric, const MetricTerms& first,
                              const MetricTerms& second, const Resampling& resampling) {
  const Scoring scoring = scoring_of(metric);
  ScoreDifference difference{.task = task, .metric = metric, .items = std::ssize(first)};
  difference.larger_is_better = scoring.larger_is_better;
  difference.first = scoring.score(sums_of(first), first.size());
  difference.second = scoring.score(sums_of(second), second.size());
  difference.difference = difference.second - difference.first;
  if (is_binary(first) && is_binary(second)) {
    int64_t only_first = 0, only_second = 0;
    for (size_t i = 0; i < first.size(); ++i) {
      only_first += first[i][0] > second[i][0] ? 1 : 0;
      only_second += second[i][0] > first[i][0] ? 1 : 0;
    }
    difference.test = "McNemar";
    difference.only_first = only_first;
    difference.only_second = only_second;
    difference.p_value = mcnemar_p_value(only_first, only_second);
  } else {
    difference.test = "randomization";
    difference.p_value = randomization_p_value(first, second, scoring.score,
                                               {.samples = 10 * resampling.samples, .seed = resampling.seed});
  }
  if (scoring.is_mean) {
    std::vector<double> of_items;
    for (size_t i = 0; i < first.size(); ++i) of_items.push_back(second[i][0] - first[i][0]);
    const auto n = static_cast<double>(first.size());
    const double variance = n > 1 ? variance_of(of_items) : 0;
    difference.items_needed = items_for(difference.difference, variance * (n - 1) / n);
    if (n > 1) difference.standard_error = std::sqrt(variance / n);
  }
  add_interval(difference, first, second, scoring.score, resampling);
  return difference;
}

std::vector<double> mean_of_samples(const MetricTerms& samples) {
  std::vector<double> mean = sums_of(samples);
  for (double& term : mean) term /= static_cast<double>(samples.size());
  return mean;
}

double variance_of_mean(const MetricTerms& samples) {
  const auto number = [](const std::vector<double>& terms) { return terms[0]; };
  return variance_of(numbers_in(samples, number)) / static_cast<double>(samples.size());
}

/// Of the mean of samples and, where each item has several that are right or wrong, of pass@k, pass^k and flip rate.
void add_differences(std::vector<ScoreDifference>& differences, const std::string& task, const std::string& metric,
                     const ItemSamples& first, const ItemSamples& second, const Resampling& resampling,
                     const std::vector<int64_t>& ks) {
  ItemSamples a, b;  // of the items that have a number for both
  double sampling = 0;
  bool binary = true;
  auto fewest = std::numeric_limits<int64_t>::max();  // samples of an item
  for (size_t i = 0; i < first.size(); ++i) {
    if (!has_numbers(first[i]) || !has_numbers(second[i])) continue;
    fewest = std::min({fewest, std::ssize(a.emplace_back(first[i])), std::ssize(b.emplace_back(second[i]))});
    sampling += variance_of_mean(first[i]) + variance_of_mean(second[i]);
    binary = binary && is_binary(first[i]) && is_binary(second[i]);
  }
  if (a.empty()) throw Error(fmt::format("{}: no item has a number of {} for both models", task, metric));
  const auto add = [&](const std::string& name, const auto& of_samples) {
    MetricTerms of_a, of_b;
    std::transform(a.begin(), a.end(), std::back_inserter(of_a), of_samples);
    std::transform(b.begin(), b.end(), std::back_inserter(of_b), of_samples);
    ScoreDifference& difference = differences.emplace_back(difference_of(task, name, of_a, of_b, resampling));
    difference.left_out = std::ssize(first) - std::ssize(a);
    difference.samples = fewest;
  };
  add(metric, mean_of_samples);
  const Scoring scoring = scoring_of(metric);
  if (scoring.is_mean && fewest > 1)
    differences.back().sampling_error = std::sqrt(sampling) / static_cast<double>(a.size());
  if (!binary || !scoring.larger_is_better || (fewest < 2 && ks.empty())) return;
  const auto all_of = [](const MetricTerms& samples, int64_t k, bool right) {
    const int64_t c = std::count(samples.begin(), samples.end(), std::vector{right ? 1.0 : 0.0});
    return all_right(std::ssize(samples), c, k);
  };
  for (const int64_t k : ks.empty() ? std::vector{fewest} : ks) {
    if (k > fewest) throw UsageError(fmt::format("{}: an item has {} samples, fewer than k = {}", task, fewest, k));
    add(fmt::format("{} pass@{}", metric, k), [&](const auto& of) { return std::vector{1 - all_of(of, k, false)}; });
    add(fmt::format("{} pass^{}", metric, k), [&](const auto& of) { return std::vector{all_of(of, k, true)}; });
  }
  if (fewest > 1)
    add(metric + kFlips, [&](const auto& of) { return std::vector{1 - all_of(of, 2, true) - all_of(of, 2, false)}; });
}

void require_same_items(const TaskScores& first, const TaskScores& second) {
  if (first.items != second.items)
    throw Error(fmt::format("{}: one model answered {} items and the other {}, or others", first.task,
                            first.items.size(), second.items.size()),
                "evaluate both with the same --limit");
  for (size_t i = 0; i < first.items.size(); ++i) {
    if (!first.hashes[i].empty() && !second.hashes[i].empty() && first.hashes[i] != second.hashes[i])
      throw Error(fmt::format("{}: item {} of one file is another one in the other file", first.task, first.items[i]),
                  "compare files of one program, made with the same version of the task");
  }
}

/// The metrics of a task that are compared: those asked for that both files have, else the first of both.
std::vector<std::string> metrics_of(const TaskScores& first, const TaskScores& second,
                                    const std::vector<std::string>& wanted) {
  std::vector<std::string> metrics;
  for (const std::string& metric : wanted.empty() ? first.metrics : wanted) {
    if (first.terms.contains(metric) && second.terms.contains(metric)) metrics.push_back(metric);
  }
  if (wanted.empty() && metrics.size() > 1) metrics.resize(1);
  return metrics;
}

std::string p_text(double p) { return p < 1e-4 ? "< 0.0001" : fmt::format("{:.4f}", p); }

}  // namespace

double mcnemar_p_value(int64_t b, int64_t c) {
  const int64_t n = b + c;
  const int64_t fewer = std::min(b, c);
  double tail = 0;  // P(X ≤ fewer) for n tosses
  for (int64_t k = 0; k <= fewer; ++k) {
    const auto x = static_cast<double>(k);
    const auto all = static_cast<double>(n);
    tail += std::exp(std::lgamma(all + 1) - std::lgamma(x + 1) - std::lgamma(all - x + 1) - all * std::log(2));
  }
  return std::min(1.0, 2 * tail);
}

double all_right(int64_t n, int64_t c, int64_t k) {
  double chance = 1;
  for (int64_t i = 0; i < k; ++i)
    chance *= static_cast<double>(std::max<int64_t>(c - i, 0)) / static_cast<double>(n - i);
  return chance;
}

void describe(Fields& field, ScoreDifference& difference) {
  field("task", difference.task);
  field("metric", difference.metric);
  field("items", difference.items);
  field("left_out", difference.left_out);
  field("samples", difference.samples);
  field("first", difference.first);
  field("second", difference.second);
  field("difference", difference.difference);
  field("low", difference.low);
  field("high", difference.high);
  field("standard_error", difference.standard_error);
  field("sampling_error", difference.sampling_error);
  field("test", difference.test);
  field("only_first", difference.only_first);
  field("only_second", difference.only_second);
  field("p_value", difference.p_value);
  field("adjusted_p_value", difference.adjusted_p_value);
  field("items_needed", difference.items_needed);
  field("larger_is_better", difference.larger_is_better);
}

void describe(Fields& field, ModelComparison& comparison) {
  field("first", comparison.first);
  field("second", comparison.second);
  field.sections("differences", comparison.differences);
  field("only_in_one", comparison.only_in_one);
}

ModelComparison compare_models(const std::vector<TaskScores>& first, const std::vector<TaskScores>& second,
                               const std::vector<std::string>& metrics, const Resampling& resampling,
                               const std::vector<int64_t>& ks) {
  ModelComparison comparison;
  struct Pool {
    ItemSamples first, second;
    int64_t tasks = 0;
  };
  std::vector<std::pair<std::string, Pool>> pools;
  for (const TaskScores& task : first) {
    const TaskScores* other = find_by(second, &TaskScores::task, task.task);
    if (other == nullptr) {
      comparison.only_in_one.push_back(task.task);
      continue;
    }
    require_same_items(task, *other);
    for (const std::string& metric : metrics_of(task, *other, metrics)) {
      const ItemSamples& a = task.terms.at(metric);
      const ItemSamples& b = other->terms.at(metric);
      add_differences(comparison.differences, task.task, metric, a, b, resampling, ks);
      Pool* pool = find_value(pools, metric);
      if (pool == nullptr) pool = &pools.emplace_back(metric, Pool{}).second;
      pool->first.insert(pool->first.end(), a.begin(), a.end());
      pool->second.insert(pool->second.end(), b.begin(), b.end());
      ++pool->tasks;
    }
  }
  for (const TaskScores& task : second) {
    if (find_by(first, &TaskScores::task, task.task) == nullptr) comparison.only_in_one.push_back(task.task);
  }
  if (comparison.only_in_one.size() == first.size() + second.size())
    throw Error("the models were evaluated on different tasks", "they have: " + join(comparison.only_in_one));
  if (comparison.differences.empty())
    throw UsageError("no task has a metric that is called " + join(metrics, " or "),
                     "the first task has: " + join(first.front().metrics));
  for (const auto& [metric, pool] : pools) {
    if (pool.tasks > 1)
      add_differences(comparison.differences, kAllTasks, metric, pool.first, pool.second, resampling, ks);
  }
  const std::vector<double> adjusted = holm_adjusted(numbers_in(comparison.differences, &ScoreDifference::p_value));
  for (size_t i = 0; i < adjusted.size(); ++i) comparison.differences[i].adjusted_p_value = adjusted[i];
  return comparison;
}

std::string comparison_text(const ModelComparison& comparison) {
  std::vector<std::vector<std::string>> rows = {{"task", "metric", "items", "first", "second", "difference",
                                                 "95% interval", "only first", "only second", "p", "adjusted p",
                                                 "items needed"}};
  std::string better, notes;
  for (const ScoreDifference& one : comparison.differences) {
    const std::string interval = std::isfinite(one.low) ? shown_score(one.low) + " … " + shown_score(one.high) : "–";
    const auto count = [](const std::optional<int64_t>& value) { return value ? with_thousands(*value) : "–"; };
    rows.push_back({one.task, one.metric, with_thousands(one.items), shown_score(one.first), shown_score(one.second),
                    shown_score(one.difference), interval, count(one.only_first), count(one.only_second),
                    p_text(one.p_value), p_text(one.adjusted_p_value), count(one.items_needed)});
    if (one.left_out > 0)
      notes +=
          fmt::format("{}, {}: items left out for lack of a finite number: {}\n", one.task, one.metric, one.left_out);
    if (one.standard_error && one.sampling_error)
      notes +=
          fmt::format("{}, {}: {} or more samples of an item; standard error {}, by the samples alone {}\n", one.task,
                      one.metric, one.samples, shown_score(*one.standard_error), shown_score(*one.sampling_error));
    constexpr double kLevel = 0.05;
    if (one.adjusted_p_value > kLevel) continue;
    const bool second = (one.difference > 0) == one.larger_is_better;
    better += printable(fmt::format("{} is better in {} ({})", second ? comparison.second : comparison.first, one.task,
                                    one.metric)) +
              '\n';
  }
  std::string text =
      fmt::format("first: {}\nsecond: {}\n\n", printable(comparison.first), printable(comparison.second)) +
      aligned(rows, 2) + printable(notes, "\n");
  text += "\n" + (better.empty() ? "no difference is more than the choice of items makes, at 5%\n" : better);
  if (!comparison.only_in_one.empty())
    text += "only one was evaluated on: " + printable(join(comparison.only_in_one)) + "\n";
  return text;
}

}  // namespace plumb
