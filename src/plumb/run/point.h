// What a training run reports: the points of its history, watch records, and its result.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/base/json_fields.h"
#include "plumb/task/metrics.h"
#include "plumb/trouble/failure.h"
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
  int64_t tokens = 0;                   // the same tokens, counted from the first step
  /// Model FLOP/s of this process (three times the forward pass, model/flops.h) as a share of the peak rate of matrix
  /// products in the run's precision (ops/peak_rate.h), since the last point, excluding validation; if measured.
  std::optional<double> ceiling_fraction;
  /// On the validation split, if measured: "valid_loss", "valid_nll", and the task's own metrics by name.
  Metrics metrics;
  // Multi-process runs: process 0's exchange with the others, mean per step since the last point.
  std::optional<double> exchange_seconds;
  std::optional<double> exchange_bytes;
  /// Mean time per step that process 0 waited for data since the last point, if there were steps.
  std::optional<double> data_seconds{};
  std::optional<double> epochs{};         // seen by the end of this step: 1.5 in the middle of the second
  std::optional<double> skipped_steps{};  // steps without an update so far; absent if none
};

/// A line of metrics.jsonl.
void describe(Fields& field, TrainPoint& point);

/// The last value of each metric in a history.
Metrics last_metrics(const std::vector<TrainPoint>& history);

/// What one watch (run/watch.h) measured after a step.
struct WatchMeasurement {
  Json values{};       // the described struct; null if it failed
  double seconds = 0;  // that it took
  std::string error;   // why it failed; empty if it did not
};

/// Measurements of the watches after a step.
struct WatchRecord {
  int64_t step = 0;                                 // steps taken; 0: before training
  std::map<std::string, WatchMeasurement> watches;  // by name

  /// The values of the watch T::kWatch as its struct T, such as CurvatureMeasurement; empty without a measurement.
  /// Throws Error on values of another struct.
  template <typename T>
  [[nodiscard]] std::optional<T> find() const {
    const auto found = watches.find(T::kWatch);
    if (found == watches.end() || found->second.values.is_null()) return {};
    return from_described_json<T>(found->second.values);
  }
};

/// A line of metrics.jsonl: {"step": …, "watch": {NAME: {…, "seconds": …}}}. The reverse throws Error on anything that
/// to_json does not write, but does not look into the values.
Json to_json(const WatchRecord& record);
WatchRecord watch_record_from_json(const Json& json);

/// How a run ended: at the end, numerically, or by an interruption; or how something that is used like a run was made:
/// as an average of checkpoints, or from a model of another library.
enum class RunOutcome { finished, diverged, stopped, averaged, imported };
std::string to_string(RunOutcome outcome);
inline void to_json(Json& json, RunOutcome outcome) { json = to_string(outcome); }

/// The best evaluation of a run.
struct BestEvaluation {
  std::string metric;  // train.best_metric
  double value = 0;
  int64_t step = 0;
};
void describe(Fields& field, BestEvaluation& best);

struct TrainResult {
  RunOutcome outcome = RunOutcome::finished;
  int64_t steps = 0;
  std::vector<TrainPoint> history;
  Metrics metrics;  // the last value of each: last_metrics(history)
  std::optional<BestEvaluation> best;
  double seconds = 0;  // training and evaluation time, over all resumptions
  std::vector<WatchRecord> watched{};
  std::vector<TroubleRecord> troubles{};
  std::vector<std::string> diagnosis{};        // if it diverged: what was measured and what to try, in sentences
  std::optional<LearningJudgment> learning{};  // if it was trained to its end

  [[nodiscard]] std::optional<double> valid_nll() const { return metrics.get("valid_nll"); }
  /// Whether it diverged or has learned nothing.
  [[nodiscard]] bool failed() const { return outcome == RunOutcome::diverged || (learning && learning->failed()); }
  /// The step of the best evaluation; 0 without one.
  [[nodiscard]] int64_t best_step() const { return best ? best->step : 0; }

  /// The document result.json, schema "plumb.train/1", and the reverse, which throws Error on anything else.
  [[nodiscard]] Json to_json() const;
  static TrainResult from_json(const Json& json);
};
/// All but `watched`.
void describe(Fields& field, TrainResult& result);

}  // namespace plumb
