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

/// How the harness computes the standard error of a score.
enum class StandardError {
  of_mean,    // s/√n, where s is the standard deviation of the items' terms with n − 1
  bootstrap,  // the standard deviation of the scores of resampled items
  none        // not reported
};

struct EvaluationMetric {
  /// The terms of one item from the answers to its choices.
  std::function<std::vector<double>(const EvaluationItem& item, std::span<const Answer> answers)> terms;
  /// The score of `items` items from the sums of their terms.
  std::function<double(std::span<const double> sums, size_t items)> score;
  StandardError standard_error = StandardError::of_mean;
  bool higher_is_better = true;
};

Registry<EvaluationMetric>& evaluation_metrics();

/// The score of metrics that are a mean over items: Σ/n.
double mean_of_sum(std::span<const double> sums, size_t items);

struct MetricResult {
  std::string name;
  double score = 0;
  std::optional<double> standard_error;    // none for fewer than two items, or if the metric has none
  std::optional<SampleInterval> interval;  // 95%, from resampled items; none for fewer than two items
  bool higher_is_better = true;
};

struct MetricOptions {
  Resampling resampling;                // of the intervals; 0 samples: no intervals
  int64_t harness_bootstrap = 100'000;  // samples of StandardError::bootstrap, with Python's random numbers; 0: none
};

/// A metric over items, where answers[i] are the answers to the choices of items[i]. Throws Error without items.
MetricResult measure(const std::string& metric, const std::vector<EvaluationItem>& items,
                     const std::vector<std::vector<Answer>>& answers, const MetricOptions& options = {});

/// The standard error of the mean over several tasks weighted by their items, from the pooled variance, as the harness
/// computes it for groups. nullopt if an error is unknown, or with only one item per task.
std::optional<double> pooled_standard_error(const std::vector<std::optional<double>>& errors,
                                            const std::vector<size_t>& items);

}  // namespace plumb
