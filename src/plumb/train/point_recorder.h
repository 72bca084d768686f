// Accumulates the next point of a run's history from its steps.
#pragma once

#include <cstdint>
#include <optional>

#include "plumb/base/running_mean.h"
#include "plumb/parallel/group.h"
#include "plumb/run/point.h"
#include "plumb/run/train_state.h"
#include "plumb/train/progress_line.h"

namespace plumb {

/// Sums that a resumed run needs are in TrainState.
class PointRecorder {
 public:
  /// The values of the step being taken, and the metrics measured after it.
  TrainPoint point;

  /// Sets the peak rate of this process in FLOP/s, for ceiling_fraction; 0: not measured.
  void set_peak_rate(double rate) { peak_rate_ = rate; }

  /// Adds a step's loss and nll, per label. Not called for skipped steps.
  void add_loss(double loss, double nll);
  /// Adds a step's work: tokens of all processes, and FLOPs of this process.
  void add_work(int64_t tokens, double flops);
  /// Adds the time of a step, of which it waited `data_seconds` for data, and the total exchange cost before and after
  /// it.
  void add_step(double seconds, double data_seconds, const ExchangeCost& before, const ExchangeCost& after);

  /// After a rollback: drops the point and the running losses of the undone steps, which may be NaN.
  void begin_anew();

  /// The status after a step, for the progress line.
  [[nodiscard]] TrainStatus status() const;

  /// Completes the point with means since the last one, and resets their sums. `skipped`: steps without an update so
  /// far.
  void close(TrainState& state, int64_t skipped);

  /// Returns the point, after close(), and begins the next one.
  TrainPoint take();

 private:
  [[nodiscard]] std::optional<double> ceiling_fraction() const;
  [[nodiscard]] double tokens_per_second() const { return static_cast<double>(span_.tokens) / span_.seconds; }

  /// Totals over the training steps since the last point.
  struct Span {
    int64_t steps = 0;
    int64_t tokens = 0;
    double flops = 0;
    double seconds = 0;
    double data_seconds = 0;
    double exchange_seconds = 0;
    int64_t exchange_bytes = 0;
  } span_;
  double peak_rate_ = 0;
  RunningMean running_loss_, running_nll_;  // single-batch values are too noisy to show
  double shown_loss_ = 0, shown_nll_ = 0;
};

}  // namespace plumb
