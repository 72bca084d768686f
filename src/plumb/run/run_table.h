// A table of runs: one row per run, first the settings that differ, then the results.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plumb/run/run_summary.h"

namespace plumb {

struct RunColumn {
  std::string name;                              // heading: "learning_rate", "best validation loss"
  std::string key;                               // alternative name: "train.learning_rate", "loss"
  std::function<Json(const RunSummary&)> value;  // number, text or null
  bool is_time = false;                          // in seconds
  bool is_setting = false;                       // a configuration key
};

/// A value in TOML notation as a number if it is one, otherwise as text without quotes; null if it is empty.
Json setting_cell(const std::string& toml);

/// The columns: run, the keys that differ, outcome, step, the best validation loss with its step, other metrics, time
/// and, if something could not be read, trouble.
std::vector<RunColumn> run_columns(const std::vector<RunSummary>& runs);

/// The columns of these names: headings, keys, or last parts of keys; also keys in which the runs do not differ. Throws
/// UsageError if there is no such column, suggesting the nearest.
std::vector<RunColumn> run_columns(const std::vector<RunSummary>& runs, const std::vector<std::string>& names);

/// Stable sort by a column, given by its heading, key, or last part of its key: numbers before text, both ascending or
/// both descending; runs without a value come last. Throws UsageError if there is no such column, suggesting the
/// nearest.
void sort_runs(std::vector<RunSummary>& runs, const std::string& column, bool descending);

/// The table as text. To fit into `width` characters (0: no limit), omits settings, starting with those that the fewest
/// runs have, and names them below the table.
std::string run_table_text(const std::vector<RunSummary>& runs, const std::vector<RunColumn>& shown, size_t width = 0);

/// The table as a document, schema plumb.runs/1 (docs/formats/run.md).
Json run_table_json(const std::vector<RunSummary>& runs);

}  // namespace plumb
