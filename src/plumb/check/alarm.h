// Alarms: measurements of a planned run before training, each with the threshold beyond which it explains a failure.
#pragma once

#include <functional>
#include <vector>

#include "plumb/base/registry.h"
#include "plumb/check/reason.h"
#include "plumb/check/subject.h"
#include "plumb/check/verdict.h"

namespace plumb::check {

/// What alarms look at. They must not change the model's parameters.
struct Evidence {
  const TrainConfig& config;
  const Task& task;
  Model& model;                       // with the weights that the run begins with, or those of a step
  const Dataset& train;               // the training split
  const std::vector<Batch>& batches;  // of its first examples, without what is drawn anew in each epoch
  std::vector<Tensor> gradient;       // of their mean loss with the run's label smoothing, one tensor per parameter
  Yardstick yardstick;                // its `first` is the loss of `batches`
  double peak_rate = 0;               // the largest rate of the run's schedule
  int64_t warm_up = 0;                // steps until it is reached
  int64_t steps = 0;                  // of the planned run
  bool random = true;                 // whether it begins with random weights
};

/// A measurement; registers itself. It looks at a run before its first step and, if `along_training`, also as the watch
/// "alarms" (alarm_watch.cpp). Returns at least one reason if it can measure, which need not be raised, and the most
/// telling one first; none if it does not apply. Throws Error if it cannot measure.
struct Alarm {
  std::vector<Reason> (*look)(const Evidence&) = nullptr;
  bool along_training = false;
};
Registry<Alarm>& alarms();

/// The reasons of all alarms, raised ones first. An alarm that throws Error is left out with a warning. `stop` is asked
/// before each alarm; true leaves out the rest. `along_training`: only of alarms that look at any step.
std::vector<Reason> all_reasons(const Evidence& evidence, const std::function<bool()>& stop = {},
                                bool along_training = false);

}  // namespace plumb::check
