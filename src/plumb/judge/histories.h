// Which of the values that logs hold count: runs that were resumed, NaN where nothing was measured, the best of many.
#pragma once

#include <string>
#include <vector>

#include "plumb/judge/run_record.h"

namespace plumb {

/// Joins records whose steps go on where those of another end, in a place beside it and in the same arm, by `arms[i]`
/// of record i: Lightning's version_1 after version_0. Throws UsageError if one may continue several runs.
void join_resumed(std::vector<RunRecord>& records, std::vector<std::string>& arms, std::vector<std::string>& notes);

/// Leaves the values of a metric that count. From a step on to which a log goes back, the later ones do; NaN is left
/// out between numbers, and behind the last no more often than before it, since a run that diverged does not recover.
/// For the `best` value, runs keep equally many, at even distances. Throws Error if a run is several: it has two values
/// at its first step, or goes back to one that it did not have.
void settle_histories(std::vector<RunRecord>& records, const std::string& metric, bool best,
                      std::vector<std::string>& notes);

}  // namespace plumb
