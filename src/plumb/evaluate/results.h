// Evaluation results as JSON in the schema of lm-evaluation-harness, and as a table for people.
#pragma once

#include <string>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/evaluate/evaluate.h"

namespace plumb {

/// The combined results of several tasks, weighted by items.
struct GroupResult {
  std::string name;
  std::vector<std::string> tasks;
  size_t items = 0;
  std::vector<MetricResult> metrics;  // means over items that all tasks have, limited to group_metrics
};

/// The groups that the tasks name.
std::vector<GroupResult> groups_of(const std::vector<TaskResult>& tasks);

/// "results", "groups" (if any), "group_subtasks", "configs", "versions", "n-shot", "higher_is_better" and "n-samples",
/// as the harness writes them; and Plumb's "intervals" and "categories".
Json evaluation_json(const std::vector<TaskResult>& tasks);

/// One row per metric of each task and group, then the categories if there are several.
std::string evaluation_text(const std::vector<TaskResult>& tasks);

/// One line of JSON per item, in the harness's schema of samples.
std::string samples_text(const TaskResult& result);

}  // namespace plumb
