// What a training run says of itself: the points of its history, and its result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/task/metrics.h"

namespace plumb {

/// What is known at one step. Means are over labels by their weights, in nats; "since the last point" where a span is
/// meant.
struct TrainPoint {
  int64_t step = 0;
  int64_t epoch = 0;  // counts from 0
  double learning_rate = 0;
  double loss = 0;                      // mean label-smoothed training loss since the last point
  double nll = 0;                       // mean negative log-likelihood since the last point
  std::optional<double> gradient_norm;  // global norm of this step's gradient, before clipping, where it was formed
  double tokens_per_second = 0;         // see Batch::tokens; since the last point, validation not counted
  /// Of the validation split, where it was measured: "valid_loss", "valid_nll", and the task's own by their names.
  Metrics metrics;
  // Of a run of several processes: means per step since the last point, of what process 0 exchanged with the others.
  std::optional<double> exchange_seconds;
  std::optional<double> exchange_bytes;
};

/// A line of metrics.jsonl; what is not finite becomes null, and is read back as NaN.
Json to_json(const TrainPoint& point);
TrainPoint point_from_json(const Json& json);

struct TrainResult {
  std::string outcome;  // "finished", "diverged" or "stopped"
  int64_t steps = 0;
  std::vector<TrainPoint> history;
  Metrics metrics;  // the last value of each
  std::optional<double> best_valid_nll;
  int64_t best_step = 0;
  double seconds = 0;  // of training and evaluation, over all resumptions

  [[nodiscard]] std::optional<double> valid_nll() const { return metrics.get("valid_nll"); }

  [[nodiscard]] Json to_json() const;
  static TrainResult from_json(const Json& json);
};

}  // namespace plumb
