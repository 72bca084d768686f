// What a training run reports: the points of its history, watch records, and its result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/task/metrics.h"
#include "plumb/trouble/trouble.h"

namespace plumb {

/// The state at one step. Loss and nll are weighted means over labels, in nats.
struct TrainPoint {
  int64_t step = 0;
  int64_t epoch = 0;  // counts from 0
  double learning_rate = 0;
  double loss = 0;                      // mean label-smoothed training loss since the last point
  double nll = 0;                       // mean negative log-likelihood since the last point
  std::optional<double> gradient_norm;  // global norm of this step's gradient, before clipping, if it was computed
  double tokens_per_second = 0;         // see Batch::tokens; since the last point, excluding validation
  std::optional<int64_t> tokens;        // the same tokens, counted from the first step; unknown in older runs
  /// Model FLOP/s of this process (three times the forward pass, model/flops.h) as a share of the peak rate of matrix
  /// products in the run's precision (ops/peak_rate.h), since the last point, excluding validation; if measured.
  std::optional<double> ceiling_fraction;
  /// On the validation split, if measured: "valid_loss", "valid_nll", and the task's own metrics by name.
  Metrics metrics;
  // Multi-process runs: process 0's exchange with the others, mean per step since the last point.
  std::optional<double> exchange_seconds;
  std::optional<double> exchange_bytes;
  /// Mean time per step that process 0 waited for data since the last point; unknown in older runs.
  std::optional<double> data_seconds{};
  std::optional<double> skipped_steps{};  // steps without an update so far; absent if none
};

/// A line of metrics.jsonl. Nonfinite values are written as null and read back as NaN.
Json to_json(const TrainPoint& point);
TrainPoint point_from_json(const Json& json);

/// The last value of each metric in a history.
Metrics last_metrics(const std::vector<TrainPoint>& history);

/// Measurements of the watches after a step (run/watch.h): values by watch and name.
struct WatchRecord {
  int64_t step = 0;  // steps taken; 0: before training
  Json values = Json::object();
};

/// A line of metrics.jsonl: {"step": …, "watch": {…}}.
Json to_json(const WatchRecord& record);
WatchRecord watch_record_from_json(const Json& json);

struct TrainResult {
  std::string outcome;  // "finished", "diverged" or "stopped"
  int64_t steps = 0;
  std::vector<TrainPoint> history;
  Metrics metrics;  // the last value of each: last_metrics(history)
  std::optional<double> best_valid_nll;
  int64_t best_step = 0;
  double seconds = 0;  // training and evaluation time, over all resumptions
  std::vector<WatchRecord> watched{};
  /// The name and best value of train.best_metric, unless it is valid_nll.
  std::optional<std::pair<std::string, double>> best_value{};
  std::vector<TroubleRecord> troubles{};
  std::vector<std::string> diagnosis{};  // if it diverged: what was measured and what to try, in sentences

  [[nodiscard]] std::optional<double> valid_nll() const { return metrics.get("valid_nll"); }

  [[nodiscard]] Json to_json() const;
  static TrainResult from_json(const Json& json);
};

}  // namespace plumb
