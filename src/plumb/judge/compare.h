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

/// The chance that k ≤ n samples drawn from n, of which c are right, are all right: C(c, k)/C(n, k). It is pass^k (Yao
/// et al. 2024, arXiv 2406.12045); pass@k (Chen et al. 2021, arXiv 2107.03374) is 1 less that of the wrong samples.
double all_right(int64_t n, int64_t c, int64_t k);

/// The difference of two models in one metric of one task, or of all tasks taken together. An item with several samples
/// has their mean, or what they tell: "acc pass@4", "acc pass^4", "acc flip rate" (of two, one is right, one is not).
struct ScoreDifference {
  std::string task;  // "all tasks" for the items of all
  std::string metric;
  int64_t items = 0;
  int64_t left_out = 0;          // items without a finite number for one of the models
  int64_t samples = 1;           // the fewest of an item
  double first = 0, second = 0;  // scores
  double difference = 0;         // second − first
  double low = 0, high = 0;      // its 95% interval, by a paired bootstrap of the items; NaN if there is one item
  /// Of the difference of means: s/√n of the items' differences, which has the choice of samples in it; and the part by
  /// the choice of samples alone, as if the same items were asked again. Nothing where an item has one sample.
  std::optional<double> standard_error, sampling_error;
  std::string test;                                // "McNemar", or "randomization"
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

/// Compares two models on the tasks that both have, by `metrics` or by the first of each task. `ks`: of pass@k and
/// pass^k; none: the fewest samples that an item has. Throws Error if no task is common, if a task's items differ or
/// none has a number for both, and UsageError on metrics that no task has, and on a k of more samples than an item has.
ModelComparison compare_models(const std::vector<TaskScores>& first, const std::vector<TaskScores>& second,
                               const std::vector<std::string>& metrics, const Resampling& resampling,
                               const std::vector<int64_t>& ks = {});

std::string comparison_text(const ModelComparison& comparison);

}  // namespace plumb
