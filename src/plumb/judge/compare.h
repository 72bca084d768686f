// Two models on the same items of evaluation tasks: is their difference more than the choice of items makes?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/judge/item_scores.h"
#include "plumb/metrics/resampling.h"

namespace plumb {

/// P(a split of n items at least as uneven as b to c) if both models are right as often: the exact test of McNemar
/// (1947), two-sided; 1 without items on which they differ.
double mcnemar_p_value(int64_t b, int64_t c);

/// The difference of two models in one metric of one task, or of all tasks taken together.
struct ScoreDifference {
  std::string task;  // "all tasks" for the items of all
  std::string metric;
  int64_t items = 0;
  double first = 0, second = 0;  // scores
  double difference = 0;         // second − first
  double low = 0, high = 0;      // its 95% interval, by a paired bootstrap of the items; NaN if there is one item
  std::string test;              // "McNemar", or "randomization"
  std::optional<int64_t> only_first, only_second;  // items that one model alone got right, for McNemar's test
  double p_value = 1;
  double adjusted_p_value = 1;  // among all rows of the comparison, "all tasks" included
  /// The number of items with which a difference as large as this is found in 80 of 100 cases at 5%, for means over
  /// items (Connor 1987). Nothing if the models do not differ, or for perplexities.
  std::optional<int64_t> items_needed;
  bool larger_is_better = true;
};
void describe(Fields& field, ScoreDifference& difference);

struct ModelComparison {
  std::string first, second;
  std::vector<ScoreDifference> differences;
  std::vector<std::string> only_in_one;  // tasks that one of them has
};
void describe(Fields& field, ModelComparison& comparison);

/// Compares two models on the tasks that both have, by `metrics` or by the first of each task. Throws Error if no task
/// is common, or if a task's items differ, and UsageError on metrics that no task has.
ModelComparison compare_models(const std::vector<TaskScores>& first, const std::vector<TaskScores>& second,
                               const std::vector<std::string>& metrics, const Resampling& resampling);

std::string comparison_text(const ModelComparison& comparison);

}  // namespace plumb
