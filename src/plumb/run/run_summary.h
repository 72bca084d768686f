// Summaries of run directories in any state: running, ended, killed, half-written or damaged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/run/point.h"

namespace plumb {

struct RunSummary {
  std::filesystem::path directory;
  std::string name;  // display name: the part of the path that distinguishes the runs read together
  /// "finished", "diverged" or "stopped" if the run has ended; "running" while a process trains it; "unfinished" if it
  /// has not ended but no process trains it, for instance after a kill; "unreadable" if nothing is known about it.
  std::string outcome;
  std::string trouble;  // what could not be read and why; empty if everything could
  std::vector<std::pair<std::string, std::string>> settings;  // "train.learning_rate", with values in TOML notation
  std::vector<TrainPoint> history;
  std::vector<WatchRecord> watched;
  int64_t step = 0;  // steps taken, as far as they are recorded
  Metrics metrics;   // the last value of each
  std::optional<double> best_valid_nll;
  int64_t best_step = 0;
  std::optional<double> seconds;  // training and evaluation time; without evaluation if the run has not ended
  std::optional<LearningJudgment> learning;  // of a run that has been trained to its end

  /// The value of a key in TOML notation; empty if the configuration lacks it.
  [[nodiscard]] std::string setting(const std::string& key) const;
};

/// Reads a run without changing or disturbing it. Missing or damaged files are reported in `trouble`, not thrown.
RunSummary summarize_run(const std::filesystem::path& run);

/// Whether a process is training in the directory: by the lock of the directory, or of a file in it whose name contains
/// "lock". False if it cannot be told.
bool is_being_trained(const std::filesystem::path& run);

/// Whether a directory is a run's: marked as one, or, if the mark is unreadable, containing a run's files.
bool is_run_directory(const std::filesystem::path& directory);

/// The run directories at these places, each a run directory or a directory to search recursively, in the order of the
/// arguments and then by path. Throws Error if a place does not exist or contains no run.
std::vector<std::filesystem::path> find_runs(const std::vector<std::string>& places);

/// Whether a directory is a run or has one somewhere below.
bool contains_runs(const std::filesystem::path& place);

/// Summaries of the runs at these places; throws as find_runs does.
std::vector<RunSummary> read_runs(const std::vector<std::string>& places);

/// Names runs by their paths without the common beginning; a single run by the last part of its path.
void name_runs(std::vector<RunSummary>& runs);

/// The keys whose values differ between the readable configurations, in order. A key absent from some counts as
/// different.
std::vector<std::string> differing_keys(const std::vector<RunSummary>& runs);

/// "learning_rate" of "train.learning_rate".
std::string last_key_part(const std::string& key);

/// The tasks' own metrics, in order of first appearance.
std::vector<std::string> task_metrics(const std::vector<RunSummary>& runs);

/// Training time in seconds at each point of a history, excluding evaluation: Σ tokens / (tokens per second) over the
/// spans between points. Empty at points without a rate.
std::vector<std::optional<double>> training_seconds(const std::vector<TrainPoint>& history);

}  // namespace plumb
