// The progress of a training run: what a resumed run needs besides tensors and the state of the trouble judge.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/run/point.h"

namespace plumb {

struct TrainState {
  /// An evaluation by train.best_metric.
  struct Evaluation {
    int64_t step = 0;
    double value = 0;
  };

  int64_t step = 0;   // steps taken
  int64_t epoch = 0;  // epoch of the next batch
  int64_t batch = 0;  // index of the next batch within the epoch
  // Weighted sums over labels since the last point.
  double loss = 0;
  double nll = 0;
  double weight = 0;
  int64_t tokens = 0;          // trained on so far (Batch::tokens)
  std::optional<double> best;  // the best value of train.best_metric
  int64_t best_step = 0;
  std::vector<Evaluation> best_list;  // with train.keep_best > 1: best first
  int64_t validations_since_best = 0;
  bool complete = false;              // nothing is left to train
  double seconds = 0;                 // training and evaluation time
  std::optional<TrainPoint> pending;  // the point of the last step, if its slow metrics have not been computed yet
};
void describe(Fields& field, TrainState::Evaluation& evaluation);
void describe(Fields& field, TrainState& state);

}  // namespace plumb
