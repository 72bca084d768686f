// Charts of W&B's page, as it exports them.
#pragma once

#include <string>
#include <vector>

#include "plumb/judge/rows.h"

namespace plumb {

/// W&B exports a chart as a table with a column for the place in the history and, for each run and metric, columns
/// "RUN - METRIC", "RUN - METRIC__MIN" and "RUN - METRIC__MAX". Such a table becomes a line for each run and place,
/// with "step", "run" and the metrics. If all names of runs end in a number, and some but not all of them differ in it
/// alone
/// ("base-1", "wide-1", "wide-seed-2"), that is their "seed", and the rest is their "group". Any other table is
/// returned as it is.
std::vector<Row> unfolded_chart(std::vector<Row> rows, const std::vector<std::string>& header);

}  // namespace plumb
