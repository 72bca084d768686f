// Runs from a table: a line for each run, or for each point of a run.
#pragma once

#include <vector>

#include "plumb/judge/log_table.h"
#include "plumb/judge/run_record.h"

namespace plumb {

/// Runs from the lines of a log, by the rules of `read_run_records`. Throws Error if it has more than 100,000, and
/// UsageError if its lines are of several kinds that no key of it tells apart.
std::vector<RunRecord> records_of(const LogTable& table);

}  // namespace plumb
