// How far a training run has come: everything that a resumed run needs besides tensors and the judge of trouble.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/base/json.h"

namespace plumb {

struct TrainState {
  int64_t step = 0;   // steps taken
  int64_t epoch = 0;  // epoch of the next batch
  int64_t batch = 0;  // index of the next batch within the epoch
  // Sums over labels since the last point.
  double loss = 0;
  double nll = 0;
  double weight = 0;
  std::optional<int64_t> tokens = 0;  // trained so far (Batch::tokens); unknown if an older version began the run
  std::optional<double> best;         // the best value of train.best_metric
  int64_t best_step = 0;
  std::vector<std::pair<int64_t, double>> best_list;  // with train.keep_best > 1: steps and values, the best first
  int64_t validations_since_best = 0;
  bool complete = false;  // nothing is left to train
  double seconds = 0;
  Json pending;  // the point of the last step, if its slow metrics have not been computed yet
};

/// The document state.json, "plumb.state/1"; `metric`: train.best_metric.
Json to_json(const TrainState& state, const std::string& metric);

/// Throws Error with `origin` if this is not the state of a run.
TrainState train_state_from_json(const Json& json, const std::string& metric, const std::string& origin);

}  // namespace plumb
