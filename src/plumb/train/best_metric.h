// The metric that decides which checkpoint is the best, and when a run stops early.
#pragma once

#include <string>

#include "plumb/task/task.h"
#include "plumb/train/config.h"

namespace plumb {

struct BestMetric {
  std::string name = "valid_nll";  // as in metrics.jsonl
  bool larger_is_better = false;
  bool is_slow = false;  // computed by Task::score, every train.score_every steps

  [[nodiscard]] bool is_better(double value, double than) const {
    return larger_is_better ? value > than : value < than;
  }
};

/// Whether the task has metrics that only Task::score computes.
bool has_slow_metrics(const Task& task);

/// train.best_metric among the metrics of the task: "valid_nll", "valid_loss", or one of its own, "accuracy" or "bleu".
/// Throws Error that lists them if there is no such metric, or if it is never computed.
BestMetric best_metric_of(const TrainConfig& config, const Task& task);

}  // namespace plumb
