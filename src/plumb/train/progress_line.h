// The parts of a training run's progress line.
#pragma once

#include <optional>
#include <vector>

#include "plumb/base/progress.h"

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

}  // namespace plumb
