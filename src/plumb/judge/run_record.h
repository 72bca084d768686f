// A training run of any program: what was set, and what was measured along it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace plumb {

struct RunRecord {
  struct Value {
    double step = 0;
    double value = 0;  // NaN and infinities as the program wrote them
  };

  std::string name;                                           // for messages: the run's, or the file's
  std::vector<std::pair<std::string, std::string>> settings;  // as text, in the order of the file
  std::map<std::string, std::vector<Value>> series;           // by metric, in the order of the file
  bool failed = false;                                        // the program says that the run failed
  bool diverged = false;                                      // so that it has no loss at its end
  std::map<std::string, double> most{};  // by metric, what a run counts with at most: see LearningJudgment
  bool ended = true;                     // false: it trains, or was stopped before its end

  /// The value of a setting; nullptr without one.
  [[nodiscard]] const std::string* setting(const std::string& key) const;
};

/// The runs at a place:
///   - a directory of Plumb's runs (run/run_summary.h), or one of them;
///   - TensorBoard's event files, one run for each directory that holds some;
///   - a table (.csv, .tsv), a file with an object per line (.jsonl), or one with a list of objects (.json), by itself
///   or
///     as "log_history", as transformers' Trainer writes it. With a column "step" (or "_step", "global_step",
///     "iteration", "epoch"), a line is a point of a run, and runs are told apart by columns such as "run" and "seed",
///     by `keys` and by columns of text; without any, a file is one run. Otherwise a line is a run, and its columns are
///     both settings and metrics. Nested objects give keys with dots;
///   - any other directory: all such files in it and in the folders within, of .json files only "trainer_state.json".
///     One that cannot be read is left out, with a sentence in `notes`.
/// Throws Error if nothing can be read there, and UsageError if lines have to be chosen by a key.
std::vector<RunRecord> read_run_records(const std::filesystem::path& place, const std::vector<std::string>& keys,
                                        std::vector<std::string>& notes);
std::vector<RunRecord> read_run_records(const std::filesystem::path& place, const std::vector<std::string>& keys = {});

}  // namespace plumb
