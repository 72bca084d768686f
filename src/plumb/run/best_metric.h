// The metric that decides which checkpoint is best and when a run stops early.
#pragma once

#include <string>

#include "plumb/run/config.h"
#include "plumb/task/task.h"

namespace plumb {

struct BestMetric {
  std::string name = "valid_nll";  // as in metrics.jsonl
  bool larger_is_better = false;
  bool is_slow = false;  // computed by Task::score, when train.score_every is due

  [[nodiscard]] bool is_better(double value, double than) const {
    return larger_is_better ? value > than : value < than;
  }
};

/// Whether the task has metrics that only Task::score computes.
bool has_slow_metrics(const Task& task);

/// Looks up train.best_metric among the task's metrics: "valid_nll", "valid_loss", or one of the task's own, such as
/// "accuracy" or "bleu". Throws Error if the task has no such metric (listing those it has), or if this configuration
/// never computes it, or only at the end although there is a train.patience.
BestMetric best_metric_of(const TrainConfig& config, const Task& task);

}  // namespace plumb
