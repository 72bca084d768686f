// What an evaluation is worth among those before it.
#pragma once

#include "plumb/train/best_metric.h"
#include "plumb/train/train_state.h"

namespace plumb {

/// By train.best_metric.
struct EvaluationRank {
  bool best = false;             // better than all before
  bool one_of_the_best = false;  // among the `keep_best` best, if that is above 1
};

/// Compares the value of the metric after the state's step with those before, and enters it into the state: the best
/// value, the list of the best, and the number of evaluations since the best. A value that is not finite improves on
/// nothing.
EvaluationRank rank_evaluation(double value, const BestMetric& metric, int64_t keep_best, TrainState& state);

}  // namespace plumb
