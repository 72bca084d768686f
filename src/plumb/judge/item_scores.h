// What models scored on the items of evaluation tasks, from files of `plumb evaluate` or lm-evaluation-harness.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "plumb/evaluate/metrics.h"

namespace plumb {

/// The terms (evaluate/metrics.h) of each sample of each item: [item][sample][term].
using ItemSamples = std::vector<MetricTerms>;

/// Whether all are finite numbers.
bool has_numbers(const MetricTerms& samples);

/// A task's items: by metric, their samples in the order of `items`; null is NaN. A metric without a finite number is
/// left out.
struct TaskScores {
  std::string task;
  std::vector<std::string> items;    // "doc_id", ascending
  std::vector<std::string> hashes;   // of the items' content; empty strings where the file has none
  std::vector<std::string> metrics;  // in the order of the file: "acc", "exact_match,strict-match"
  std::map<std::string, ItemSamples> terms;
};

/// The tasks in a file samples_TASK.jsonl, in one of the harness with a date (samples_TASK_DATE.jsonl), or in all such
/// files of a directory and those within; of several dates, the latest. Each item has one sample; if `repeated`, all
/// its lines in all files of its task are samples. Throws Error if there are none, on a file without metrics, and if
/// lines of an item are about different ones.
std::vector<TaskScores> read_task_scores(const std::filesystem::path& place, bool repeated = false);

}  // namespace plumb
