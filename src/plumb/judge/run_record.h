// A training run of any program: what was set, and what was measured along it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plumb/judge/log_lines.h"

namespace plumb {

struct RunRecord {
  struct Value {
    double step = 0;
    double value = 0;  // NaN and infinities as the program wrote them
  };

  std::string name;                                           // the run's, or the file's
  std::vector<std::pair<std::string, std::string>> settings;  // as text, in the order of the file
  std::map<std::string, std::vector<Value>> series;           // by metric, in the order of the file
  std::filesystem::path place{};         // the directory of its log; empty if that holds other runs
  std::string state{};                   // in the program's word: "crashed"; empty if it says nothing
  bool failed = false;                   // the program says that the run failed
  bool diverged = false;                 // so that it has no loss at its end
  bool ended = true;                     // false: it trains, or was stopped before its end
  bool nan_is_gap = false;               // NaN may say that nothing was measured: the log is a table
  std::map<std::string, double> most{};  // by metric, what a run counts with at most: see LearningJudgment

  /// The value of a setting; nullptr without one.
  [[nodiscard]] const std::string* setting(const std::string& key) const;
  /// Adds what was recorded after the run went on: the first value of a metric replaces what there is from that step.
  void append(const RunRecord& later);
};

struct LogFiles;

/// What is asked about logs before they are read.
struct LogKeys {
  std::vector<std::string> settings{};  // that tell runs apart
  std::vector<LinePattern> lines{};     // how lines of text logs read
};

/// The runs at a place:
///   - a directory of Plumb's runs (run/run_summary.h), or one of them;
///   - TensorBoard's event files, one run for each directory that holds some. The curves of `add_scalars` belong to the
///     run above them, as "loss/train". Directories such as "train" and "validation" below one run are its parts, with
///     the setting "part", which `settings` has to name;
///   - a table (.csv, .tsv), a file with an object per line (.jsonl), or one with a list of objects (.json), by itself
///     or as "log_history", as transformers' Trainer writes it. With a column "step" (or "_step", "global_step",
///     "iteration", "epoch"), a line is a point of a run, and runs are told apart by columns such as "Run ID" and
///     "seed", by `settings` and by columns of text; without any, a file is one run. Otherwise a line is a run, and its
///     columns are both settings and metrics. A column "State" or "status" tells which failed. Nested objects give keys
///     with dots. Files of other names are such tables if their lines are (judge/log_file.h), and text logs if
///     `keys.lines` say how a line reads;
///   - any other directory: all such files in it and in the folders within, of .json files only "trainer_state.json",
///     or, where only checkpoints have one, that of the newest checkpoint. One that cannot be read is left out,
///     with a sentence in `notes`, if these are given.
/// `known`: logs that were read before, under the same keys; of those, what has changed since is read. Throws Error if
/// nothing can be read there, and UsageError if lines have to be chosen by a key.
std::vector<RunRecord> read_run_records(const std::filesystem::path& place, const LogKeys& keys = {},
                                        std::vector<std::string>* notes = nullptr, LogFiles* known = nullptr);

}  // namespace plumb
