// Metrics of evaluation tasks, as lm-evaluation-harness defines them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plumb/base/registry.h"
#include "plumb/evaluate/answer.h"
#include "plumb/evaluate/task.h"
#include "plumb/metrics/resampling.h"

namespace plumb {

/// The terms of a metric for each item; the score depends only on their sums.
using MetricTerms = std::vector<std::vector<double>>;  // [item][term]

struct EvaluationMetric {
  /// The terms of one item from the answers to its choices.
  std::function<std::vector<double>(const EvaluationItem& item, std::span<const Answer> answers)> terms;
  /// The score of `items` items from the sums of their terms.
  std::function<double(std::span<const double> sums, size_t items)> score;
  bool is_mean = true;  // of the items' terms, so that it has a standard error
  bool higher_is_better = true;
  size_t width = 1;  // terms of an item
  /// Of a metric that chooses by log-likelihood / divisor: the divisor of a choice.
  std::function<double(const EvaluationItem& item, size_t choice)> divisor = {};
};

Registry<EvaluationMetric>& evaluation_metrics();

/// Four decimals, or five digits of a number that has more before the point, as the perplexity of a bad model.
std::string shown_score(double score);

/// The score of metrics that are a mean over items: Σ/n.
double mean_of_sum(std::span<const double> sums, size_t items);

struct MetricResult {
  std::string name;
  double score = 0;
  std::optional<double> standard_error;  // s/√n, where s is the standard deviation of the items' terms with n − 1;
                                         // none for fewer than two items, or if the score is no mean
  std::optional<SampleInterval> interval;  // 95%, from resampled items; none for fewer than two items
  bool higher_is_better = true;
  std::optional<int64_t> ties;  // of a metric that chooses: items with equal best choices, the first of which counts
};

/// A metric over items, where answers[i] are the answers to the choices of items[i]; `resampling`: of the interval, of
/// 0 samples: none. Throws Error without items.
MetricResult measure(const std::string& metric, const std::vector<EvaluationItem>& items,
                     const std::vector<std::vector<Answer>>& answers, const Resampling& resampling = {});

}  // namespace plumb
