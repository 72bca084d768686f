// The progress of a training run: what a resumed run needs besides tensors and the state of the trouble judge.
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
  // Weighted sums over labels since the last point.
  double loss = 0;
  double nll = 0;
  double weight = 0;
  std::optional<int64_t> tokens = 0;  // trained on so far (Batch::tokens); empty if an older version began the run
  std::optional<double> best;         // the best value of train.best_metric
  int64_t best_step = 0;
  std::vector<std::pair<int64_t, double>> best_list;  // with train.keep_best > 1: steps and values, best first
  int64_t validations_since_best = 0;
  bool complete = false;  // nothing is left to train
  double seconds = 0;     // training and evaluation time
  Json pending;           // the point of the last step, if its slow metrics have not been computed yet
};

/// The document state.json, schema "plumb.state/1". `metric`: train.best_metric.
Json to_json(const TrainState& state, const std::string& metric);

/// The reverse. Throws Error that names `origin` if this is not the state of a run.
TrainState train_state_from_json(const Json& json, const std::string& metric, const std::string& origin);

}  // namespace plumb
