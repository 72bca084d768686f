// Any set of training runs as one report.
#pragma once

#include <vector>

#include "plumb/train/run_summary.h"

namespace plumb {

/// The results of these runs as a document of the schema plumb.study/1, which report/html.h draws: losses by step,
/// tokens and time, learning rate, gradient norm, the task's metrics, throughput and watches, as far as the runs have
/// them; a table of the runs with what differs, and all settings. Runs that cannot be read are in the table alone.
Json runs_report(const std::vector<RunSummary>& runs);

}  // namespace plumb
