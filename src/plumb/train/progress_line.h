// The progress line of a training run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/progress.h"
#include "plumb/train/observer.h"

namespace plumb {

/// Running means and rates after a step.
struct TrainStatus {
  int64_t epoch = 0;  // from 0
  double loss = 0;    // running mean, with label smoothing
  double nll = 0;     // running mean of the negative log-likelihood per label
  double learning_rate = 0;
  std::optional<double> gradient_norm;  // of this step, before clipping
  double tokens_per_second = 0;
  std::optional<double> ceiling_fraction;  // see TrainPoint
  double data_fraction = 0;                // share of the time spent waiting for data
};

/// "epoch 3", "loss 3.214", "ppl 18.2", "lr 1.00e-03", "grad 0.52", "12345 tok/s", "34% of peak", and "data 7%" if at
/// least 1% of the time is spent waiting for data. In descending order of importance: loss, time left, tokens per
/// second, learning rate, gradient norm, perplexity, epoch and data, share of the peak.
std::vector<ProgressPart> progress_parts(const TrainStatus& status);

/// Shows this line while a run trains.
class TrainProgress final : public TrainObserver {
 public:
  explicit TrainProgress(std::string label) : label_(std::move(label)) {}
  void on_begin(const Trainer& trainer) override;
  void on_step(const Trainer& trainer, const TrainStatus& status) override;
  void on_end(const Trainer&) override { shown_.reset(); }

 private:
  std::string label_;
  std::optional<Progress> shown_;
};

}  // namespace plumb
