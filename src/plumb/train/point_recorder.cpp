#include "plumb/train/point_recorder.h"

#include <utility>

namespace plumb {

void PointRecorder::add_loss(double loss, double nll) {
  shown_loss_ = running_loss_.add(loss);
  shown_nll_ = running_nll_.add(nll);
}

void PointRecorder::add_work(int64_t tokens, double flops) {
  span_.tokens += tokens;
  span_.flops += flops;
}

void PointRecorder::add_step(double seconds, double data_seconds, const ExchangeCost& before,
                             const ExchangeCost& after) {
  ++span_.steps;
  span_.seconds += seconds;
  span_.data_seconds += data_seconds;
  span_.exchange_seconds += after.seconds - before.seconds;
  span_.exchange_bytes += after.bytes - before.bytes;
}

void PointRecorder::begin_anew() {
  point = {};
  running_loss_ = running_nll_ = RunningMean();
}

std::optional<double> PointRecorder::ceiling_fraction() const {
  if (peak_rate_ <= 0 || span_.seconds <= 0) return std::nullopt;
  return span_.flops / span_.seconds / peak_rate_;
}

TrainStatus PointRecorder::status() const {
  return {point.epoch,         shown_loss_,         shown_nll_,         point.learning_rate,
          point.gradient_norm, tokens_per_second(), ceiling_fraction(), span_.data_seconds / span_.seconds};
}

void PointRecorder::close(TrainState& state, int64_t skipped) {
  // Without any weight, the means are NaN if steps were skipped, and 0 otherwise.
  const double weight = state.weight > 0 || skipped > 0 ? state.weight : 1;
  point.loss = state.loss / weight;
  point.nll = state.nll / weight;
  if (skipped > 0) point.skipped_steps = static_cast<double>(skipped);
  point.tokens_per_second = span_.seconds > 0 ? tokens_per_second() : 0;
  point.tokens = state.tokens;
  point.ceiling_fraction = ceiling_fraction();
  if (span_.steps > 0) point.data_seconds = span_.data_seconds / static_cast<double>(span_.steps);
  if (span_.exchange_bytes > 0) {
    point.exchange_seconds = span_.exchange_seconds / static_cast<double>(span_.steps);
    point.exchange_bytes = static_cast<double>(span_.exchange_bytes) / static_cast<double>(span_.steps);
  }
  state.loss = state.nll = state.weight = 0;
  span_ = {};
}

TrainPoint PointRecorder::take() { return std::exchange(point, {}); }

}  // namespace plumb
