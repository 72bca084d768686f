// Charts of W&B's page, as it exports them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plumb/judge/rows.h"

namespace plumb {

/// W&B exports a chart as a table with a column for the place in the history and, for each run and metric, columns
/// "RUN - METRIC", "RUN - METRIC__MIN" and "RUN - METRIC__MAX". Such a table becomes a line for each run and place,
/// with "step", "run" and the metrics. If all names of runs end in a number, and some but not all of them differ in it
/// alone ("base-1", "wide-1", "wide-2"), there are "run_prefix" ("wide-") and "run_number", too: it may be the seed, a
/// rate, or anything else. Any other table stays as it is.
class WandbChart {
 public:
  explicit WandbChart(const std::vector<std::string>& header);

  /// The lines that a line of the table stands for.
  [[nodiscard]] std::vector<Row> lines_in(Row row) const;

 private:
  struct Curve {
    std::string run, metric;
  };

  std::string axis_;                     // its first column
  std::map<std::string, Curve> curves_;  // by column
  std::map<std::string, Row> settings_;  // that the names of runs tell, by run
};

}  // namespace plumb
