// Training runs as a report compares them: grouped over seeds, and named by what differs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/run/run_summary.h"

namespace plumb {

/// Runs of one task whose configurations differ at most in train.seed.
struct RunGroup {
  std::string task;  // task.name; empty if it is not known
  /// What differs from the other groups of this task: "learning_rate 0.001, warm_up 100 (3 runs)". Of many settings, as
  /// few as tell them apart. The name of the run if nothing else does.
  std::string label;
  std::string full_label;  // the same among groups of several tasks: "translation, learning_rate 0.001"
  std::vector<std::pair<std::string, Json>> settings;      // of the label, by short name: ("learning_rate", 0.001)
  std::vector<std::pair<std::string, Json>> all_settings;  // all that differ from the other groups of this task
  std::vector<RunSummary> runs;

  /// "learning_rate 0.001" for all settings of the label except this one.
  [[nodiscard]] std::string settings_text(const std::string& except = "") const;
};

/// The groups in the order of their first runs.
std::vector<RunGroup> group_runs(const std::vector<RunSummary>& runs);

}  // namespace plumb
