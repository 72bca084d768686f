// Runs over seeds: one row per configuration, with means and intervals over its runs.
#pragma once

#include <string>
#include <vector>

#include "plumb/analysis/statistics.h"
#include "plumb/run/run_summary.h"

namespace plumb {

/// Groups runs whose configurations differ at most in train.seed, in the order of each group's first run. A run whose
/// configuration is not known is alone.
std::vector<std::vector<RunSummary>> runs_by_configuration(const std::vector<RunSummary>& runs);

/// The mean of a metric over the runs that have it, with its 95% interval by Student's t: NaN ends for a single run,
/// count 0 if no run has the metric. "loss" is the best validation loss.
Interval over_runs(const std::vector<RunSummary>& runs, const std::string& metric);

/// The table as text for a terminal: the keys that differ apart from train.seed, the number of runs, the metrics.
std::string seed_table_text(const std::vector<RunSummary>& runs);

/// The table as a document, schema plumb.seeds/1 (docs/formats/run.md).
Json seed_table_json(const std::vector<RunSummary>& runs);

}  // namespace plumb
