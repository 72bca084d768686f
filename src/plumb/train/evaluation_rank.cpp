#include "plumb/train/evaluation_rank.h"

#include <algorithm>
#include <cmath>

namespace plumb {

EvaluationRank rank_evaluation(std::optional<double> found, const BestMetric& metric, int64_t keep_best,
                               TrainState& state) {
  EvaluationRank rank;
  if (!found) return rank;
  const double value = *found;
  rank.best = std::isfinite(value) && (!state.best || metric.is_better(value, *state.best));
  if (rank.best) {
    state.best = value;
    state.best_step = state.step;
    state.validations_since_best = 0;
  } else {
    ++state.validations_since_best;
  }
  if (keep_best <= 1 || !std::isfinite(value)) return rank;
  auto& list = state.best_list;
  const auto place =
      std::find_if(list.begin(), list.end(), [&](const auto& each) { return metric.is_better(value, each.value); });
  rank.among_best = place - list.begin() < keep_best;
  if (rank.among_best) list.insert(place, {state.step, value});
  if (std::ssize(list) > keep_best) list.pop_back();
  return rank;
}

}  // namespace plumb
