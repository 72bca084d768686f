// What models scored on the items of evaluation tasks, from files of `plumb evaluate` or lm-evaluation-harness.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "plumb/evaluate/metrics.h"

namespace plumb {

/// A task's items: by metric, the terms of each item (evaluate/metrics.h), in the order of `items`.
struct TaskScores {
  std::string task;
  std::vector<std::string> items;    // "doc_id", ascending
  std::vector<std::string> hashes;   // of the items' content; empty strings where the file has none
  std::vector<std::string> metrics;  // in the order of the file: "acc", "exact_match,strict-match"
  std::map<std::string, MetricTerms> terms;
};

/// The tasks in a file samples_TASK.jsonl, in one of the harness with a date (samples_TASK_DATE.jsonl), or in all such
/// files of a directory and those within; of several dates, the latest. Throws Error if there are none, or on a file
/// without metrics.
std::vector<TaskScores> read_task_scores(const std::filesystem::path& place);

}  // namespace plumb
