// Ranks an evaluation among earlier ones.
#pragma once

#include <optional>

#include "plumb/run/best_metric.h"
#include "plumb/run/train_state.h"

namespace plumb {

/// By train.best_metric.
struct EvaluationRank {
  bool best = false;        // better than all earlier ones
  bool among_best = false;  // among the best `keep_best`, if that is above 1
};

/// Compares the metric's value after the state's step with earlier ones, and updates the state: the best value and its
/// step, the list of the best, and the number of evaluations since the best. A nonfinite value is never an improvement;
/// an evaluation without a value does not count.
EvaluationRank rank_evaluation(std::optional<double> found, const BestMetric& metric, int64_t keep_best,
                               TrainState& state);

}  // namespace plumb
