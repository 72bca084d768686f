// A report on any set of training runs.
#pragma once

#include <vector>

#include "plumb/report/report_parts.h"
#include "plumb/run/run_summary.h"
#include "plumb/run/run_table.h"

namespace plumb {

/// The results of these runs as a document of schema plumb.study/1, which report/html.h renders: losses by step,
/// epochs, tokens and time, learning rate, gradient norm, the task's metrics, throughput and watches, where available;
/// a table of the runs with the settings that differ; and the settings they share. Unreadable runs have no curves.
Json runs_report(const std::vector<RunSummary>& runs);

/// The table of `plumb runs` with these columns; times are in seconds.
Table runs_table(const std::vector<RunSummary>& runs, const std::vector<RunColumn>& columns);

}  // namespace plumb
