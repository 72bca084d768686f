// A report on runs of any program.
#pragma once

#include <string>
#include <vector>

#include "plumb/base/json.h"
#include "plumb/judge/run_record.h"

namespace plumb {

/// The runs at these places, parts such as training and validation each by itself. `known` and what it throws: as
/// read_run_records().
std::vector<RunRecord> read_all_records(const std::vector<std::string>& places, LogFiles* known = nullptr);

/// The results of these runs as a document of schema plumb.study/1, which report/html.h renders: every metric by step,
/// and a table of the runs with their states, the settings that differ, and what each ends with.
Json records_report(const std::vector<RunRecord>& runs);

}  // namespace plumb
