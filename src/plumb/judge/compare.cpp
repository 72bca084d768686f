#include "plumb/judge/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "plumb/analysis/holm.h"
#include "plumb/base/error.h"
#include "plumb/base/terminal.h"
#include "plumb/base/text.h"
#include "plumb/judge/direction.h"

namespace plumb {
namespace {

constexpr const char* kAllTasks = "all tasks";

/// How a metric's terms give its score. One that Plumb does not have is a mean, of which more is better unless its name
/// says otherwise.
struct Scoring {
  SumScore score = mean_of_sum;
  bool larger_is_better = true;
  bool is_mean = true;
};

Scoring scoring_of(const std::string& metric) {
  const std::string name = metric.substr(0, metric.find(','));
  for (const std::string& known : {metric, name}) {
    const auto found = evaluation_metrics().entries().find(known);
    if (found == evaluation_metrics().entries().end()) continue;
    const EvaluationMetric& made = found->second.make;
    return {made.score, made.higher_is_better, made.is_mean};
  }
  return {.larger_is_better = larger_is_better_by_name(metric).value_or(true)};
}

std::vector<double> sums_of(const MetricTerms& terms) {
  std::vector<double> sums(terms.front().size());
  for (const auto& row : terms) std::transform(row.begin(), row.end(), sums.begin(), sums.begin(), std::plus());
  return sums;
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
  MetricTerms both = first;
  for (size_t i = 0; i < both.size(); ++i) both[i].insert(both[i].end(), second[i].begin(), second[i].end());
  std::vector<double> samples;
  for (const std::vector<double>& sums : bootstrap_sums(both, resampling)) {
    const std::span<const double> all(sums);
    const size_t width = first.front().size();
    samples.push_back(score(all.subspan(width), first.size()) - score(all.first(width), first.size()));
  }
  const SampleInterval interval = interval_of_samples(std::move(samples));
  difference.low = interval.low;
  difference.high = interval.high;
}

/// ((z₁ √v₀ + z₂ √v)/d)², with the variances of an item's difference without and with the effect; z₁ and z₂ are the
/// 97.5% and 80% quantiles of the normal distribution.
std::optional<int64_t> items_for(const MetricTerms& first, const MetricTerms& second) {
  constexpr double kLevel = 1.959964;
  constexpr double kPower = 0.841621;
  const auto n = static_cast<double>(first.size());
  double mean = 0;
  double squares = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    const double d = second[i][0] - first[i][0];
    mean += d / n;
    squares += d * d / n;
  }
  if (mean == 0) return std::nullopt;
  const double root = kLevel * std::sqrt(squares) + kPower * std::sqrt(squares - mean * mean);
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
    int64_t only_first = 0;
    int64_t only_second = 0;
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
  if (scoring.is_mean && first.front().size() == 1) difference.items_needed = items_for(first, second);
  add_interval(difference, first, second, scoring.score, resampling);
  return difference;
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

std::string score_text(double value) {
  const std::string text = std::abs(value) < 1e5 ? fmt::format("{:.4f}", value) : fmt::format("{:.5g}", value);
  return text.starts_with('-') ? "−" + text.substr(1) : text;
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

void describe(Fields& field, ScoreDifference& difference) {
  field("task", difference.task);
  field("metric", difference.metric);
  field("items", difference.items);
  field("first", difference.first);
  field("second", difference.second);
  field("difference", difference.difference);
  field("low", difference.low);
  field("high", difference.high);
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
                               const std::vector<std::string>& metrics, const Resampling& resampling) {
  ModelComparison comparison;
  struct Pool {
    MetricTerms first, second;
    int64_t tasks = 0;
  };
  std::vector<std::pair<std::string, Pool>> pools;
  for (const TaskScores& task : first) {
    const auto other =
        std::find_if(second.begin(), second.end(), [&](const TaskScores& one) { return one.task == task.task; });
    if (other == second.end()) {
      comparison.only_in_one.push_back(task.task);
      continue;
    }
    require_same_items(task, *other);
    for (const std::string& metric : metrics_of(task, *other, metrics)) {
      const MetricTerms& a = task.terms.at(metric);
      const MetricTerms& b = other->terms.at(metric);
      comparison.differences.push_back(difference_of(task.task, metric, a, b, resampling));
      auto pool = std::find_if(pools.begin(), pools.end(), [&](const auto& one) { return one.first == metric; });
      if (pool == pools.end()) pool = pools.insert(pools.end(), {metric, {}});
      pool->second.first.insert(pool->second.first.end(), a.begin(), a.end());
      pool->second.second.insert(pool->second.second.end(), b.begin(), b.end());
      ++pool->second.tasks;
    }
  }
  for (const TaskScores& task : second) {
    if (std::none_of(first.begin(), first.end(), [&](const TaskScores& one) { return one.task == task.task; }))
      comparison.only_in_one.push_back(task.task);
  }
  if (comparison.only_in_one.size() == first.size() + second.size())
    throw Error("the models were evaluated on different tasks", "they have: " + join(comparison.only_in_one));
  if (comparison.differences.empty())
    throw UsageError("no task has a metric that is called " + join(metrics, " or "),
                     "the first task has: " + join(first.front().metrics));
  for (const auto& [metric, pool] : pools) {
    if (pool.tasks > 1)
      comparison.differences.push_back(difference_of(kAllTasks, metric, pool.first, pool.second, resampling));
  }
  std::vector<double> p_values;
  for (const ScoreDifference& difference : comparison.differences) p_values.push_back(difference.p_value);
  const std::vector<double> adjusted = holm_adjusted(p_values);
  for (size_t i = 0; i < adjusted.size(); ++i) comparison.differences[i].adjusted_p_value = adjusted[i];
  return comparison;
}

std::string comparison_text(const ModelComparison& comparison) {
  std::vector<std::vector<std::string>> rows = {{"task", "metric", "items", "first", "second", "difference",
                                                 "95% interval", "only first", "only second", "p", "adjusted p",
                                                 "items needed"}};
  std::string better;
  for (const ScoreDifference& one : comparison.differences) {
    const std::string interval = std::isfinite(one.low) ? score_text(one.low) + " … " + score_text(one.high) : "–";
    const auto count = [](const std::optional<int64_t>& value) { return value ? with_thousands(*value) : "–"; };
    rows.push_back({one.task, one.metric, with_thousands(one.items), score_text(one.first), score_text(one.second),
                    score_text(one.difference), interval, count(one.only_first), count(one.only_second),
                    p_text(one.p_value), p_text(one.adjusted_p_value), count(one.items_needed)});
    constexpr double kLevel = 0.05;
    if (one.adjusted_p_value > kLevel) continue;
    const bool second = (one.difference > 0) == one.larger_is_better;
    better += printable(fmt::format("{} is better in {} ({})", second ? comparison.second : comparison.first, one.task,
                                    one.metric)) +
              '\n';
  }
  std::string text =
      fmt::format("first: {}\nsecond: {}\n\n", printable(comparison.first), printable(comparison.second)) +
      aligned(rows, 2);
  text += "\n" + (better.empty() ? "no difference is more than the choice of items makes, at 5%\n" : better);
  if (!comparison.only_in_one.empty())
    text += "only one was evaluated on: " + printable(join(comparison.only_in_one)) + "\n";
  return text;
}

}  // namespace plumb
