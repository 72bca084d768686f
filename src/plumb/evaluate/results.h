// Evaluation results as JSON, and as a table for people.
#pragma once

#include <string>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/evaluate/evaluate.h"

namespace plumb {

/// "tasks": for each its kind, category, number of items and metrics; and "categories": the mean accuracies of their
/// tasks.
Json evaluation_json(const std::vector<TaskResult>& tasks);

/// One row per metric of each task, then the categories if there are several.
std::string evaluation_text(const std::vector<TaskResult>& tasks);

/// One line of JSON per item, in the harness's schema of samples.
std::string samples_text(const TaskResult& result);

}  // namespace plumb
