// What a run directory tells of its run, whatever state it is in: running, ended, killed, half-written or damaged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/train/point.h"

namespace plumb {

struct RunSummary {
  std::filesystem::path directory;
  std::string name;  // for people: the part of the path in which runs that are read together differ
  /// "finished", "diverged" or "stopped", as the run ended; "running" while a process trains it; "unfinished" if it has
  /// not ended but nobody trains it, for instance after a kill; "unreadable" if nothing is known of it.
  std::string outcome;
  std::string trouble;  // what could not be read, and why; empty if everything could
  std::vector<std::pair<std::string, std::string>> settings;  // "train.learning_rate", with values in TOML notation
  std::vector<TrainPoint> history;
  std::vector<WatchRecord> watched;
  int64_t step = 0;  // steps taken, as far as they are recorded
  Metrics metrics;   // the last value of each
  std::optional<double> best_valid_nll;
  int64_t best_step = 0;
  std::optional<double> seconds;  // training and evaluation time; without evaluation if the run has not ended

  /// The value of a key in TOML notation; empty if the configuration lacks it.
  [[nodiscard]] std::string setting(const std::string& key) const;
};

/// Reads a run without changing or disturbing it. What is missing or damaged becomes `trouble`; throws nothing because
/// of it.
RunSummary summarize_run(const std::filesystem::path& run);

/// Whether a process is training in the directory now, by the system's table of locks; false without such a table.
bool is_being_trained(const std::filesystem::path& run);

/// Whether the directory is that of a run: marked as one, or holding its files although the mark cannot be read.
bool is_run_directory(const std::filesystem::path& directory);

/// The run directories at these places, each a run directory or a directory that is searched for them, in the order of
/// the arguments and then of their names. Throws Error if a place does not exist or contains no run.
std::vector<std::filesystem::path> find_runs(const std::vector<std::string>& places);

/// Summaries of these runs.
std::vector<RunSummary> read_runs(const std::vector<std::string>& places);

/// The keys in whose values the readable configurations differ, in their order. A key that is absent from some differs.
std::vector<std::string> differing_keys(const std::vector<RunSummary>& runs);

/// Training time at each point of a history in seconds, evaluation excluded: Σ tokens / (tokens per second) over the
/// spans between points. Empty where the points do not count tokens.
std::vector<std::optional<double>> training_seconds(const std::vector<TrainPoint>& history);

}  // namespace plumb
