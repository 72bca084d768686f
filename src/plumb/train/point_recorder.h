// The point of the history that a run is working on: what its steps come to since the last one.
#pragma once

#include <cstdint>
#include <optional>

#include "plumb/base/running_mean.h"
#include "plumb/parallel/group.h"
#include "plumb/train/point.h"
#include "plumb/train/progress_line.h"
#include "plumb/train/train_state.h"

namespace plumb {

/// Sums that a resumed run needs are in TrainState instead.
class PointRecorder {
 public:
  /// The values of the step being taken, and the metrics measured after it.
  TrainPoint point;

  /// The peak rate of this process in FLOP/s, with which points have a ceiling_fraction; 0: not measured.
  void set_peak_rate(double rate) { peak_rate_ = rate; }

  /// Enters what a step has found, per label; a step that is skipped has found nothing.
  void add_loss(double loss, double nll);
  /// Enters what a step has computed: tokens of all processes, and arithmetic of this one.
  void add_work(int64_t tokens, double flops);
  /// Enters the time of a step, of which it waited `data_seconds` for its data, and what had been exchanged before and
  /// after it.
  void add_step(double seconds, double data_seconds, const ExchangeCost& before, const ExchangeCost& after);

  /// After a rollback: the point of the steps undone is dropped, and with it what their losses were, which may be NaN.
  void begin_anew();

  /// After a step, for people.
  [[nodiscard]] TrainStatus status() const;

  /// Completes the point: means over the span since the last one, whose sums begin anew. `skipped`: steps without an
  /// update so far.
  void close(TrainState& state, int64_t skipped);

  /// The point, after close(); the next one begins.
  TrainPoint take();

 private:
  [[nodiscard]] std::optional<double> ceiling_fraction() const;
  [[nodiscard]] double tokens_per_second() const { return static_cast<double>(span_.tokens) / span_.seconds; }

  /// Training time since the last point.
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
  RunningMean running_loss_, running_nll_;  // those of a single batch are too noisy to show
  double shown_loss_ = 0, shown_nll_ = 0;
};

}  // namespace plumb
