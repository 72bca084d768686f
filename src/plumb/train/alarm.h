// Alarms: measurements that explain why a run fails: of a planned run before training, along training, and of a run
// that has diverged (train/diagnosis.h).
#pragma once

#include <functional>
#include <vector>

#include "plumb/base/registry.h"
#include "plumb/model/model.h"
#include "plumb/run/config.h"
#include "plumb/task/task.h"
#include "plumb/train/finding.h"
#include "plumb/trouble/failure.h"

namespace plumb {

struct DivergedRun;

/// A run before its first step, or at a step. Alarms must not change the model's parameters.
struct PlannedRun {
  const TrainConfig& config;
  const Task& task;
  Model& model;                       // with the weights that the run begins with, or those of a step
  const Dataset& train;               // the training split
  const std::vector<Batch>& batches;  // of its first examples, without what is drawn anew in each epoch
  std::vector<Tensor> gradient;       // of their mean loss with the run's label smoothing, one tensor per parameter
  Baselines baselines;                // its `first` is the loss of `batches`
  double peak_rate = 0;               // the largest rate of the run's schedule
  int64_t warm_up = 0;                // steps until it is reached
  int64_t steps = 0;                  // of the planned run
  bool random = true;                 // whether it begins with random weights
};

/// A measurement; registers itself. Throws Error if it cannot measure.
struct Alarm {
  /// Of a run before its first step and, if `along_training`, also as the watch "alarms" (check/alarm_watch.cpp).
  /// Returns at least one finding if it can measure, which need not be raised, and the most telling one first; none if
  /// it does not apply. Null: only of a run that has diverged.
  std::vector<Finding> (*measure)(const PlannedRun&) = nullptr;
  bool along_training = false;
  /// Of a run that has diverged: texts, with advice if they explain it. Null: only of others.
  std::vector<Finding> (*explain)(const DivergedRun&) = nullptr;
};
Registry<Alarm>& alarms();

/// The findings of all alarms that measure such a run, raised ones first. An alarm that throws Error is left out with a
/// warning. `stop` is asked before each alarm; true leaves out the rest. `along_training`: only of alarms that look at
/// any step.
std::vector<Finding> all_findings(const PlannedRun& run, const std::function<bool()>& stop = {},
                                  bool along_training = false);

}  // namespace plumb
