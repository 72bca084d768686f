// Carries out a training run, for the verbs that start one.
#pragma once

#include <string>
#include <vector>

#include "plumb/run/config.h"
#include "verb.h"

namespace plumb::app {

/// Trains in the run directory `out` (run_training) with a progress display and event files, until the end or a signal,
/// and emits the result. Throws Interrupted after a signal, Diverged or Ended if training diverged.
void train_and_report(const RunConfig& config, const std::string& out, Globals& globals);

/// A new run as the configuration says, on `data` or, if that is empty, on data.directory. A kind of model that it
/// leaves out is the data's (usual_model_kind), and other keys that it leaves out are as is usual for the task
/// (Task::usual_settings), except the length if train.epochs is given, and weight decay if the optimizer is. Throws
/// UsageError without data.
RunConfig new_run(const Config& config, const std::string& data);

/// Adds --set, which collects assignments.
void add_set_option(CLI::App& verb, std::vector<std::string>& set);

}  // namespace plumb::app
