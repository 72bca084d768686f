// Runs gathered into arms: what they end with, by learning rate and seed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/analysis/sweep.h"
#include "plumb/judge/run_record.h"

namespace plumb {

/// Runs and the arm that somebody said they belong to; an empty name: by their settings.
struct ArmPlace {
  std::string arm;
  std::string place;
};

/// "NAME=PLACE", or a place alone; a pattern such as "runs/pre-*", which a shell expands only if it begins a word, is
/// expanded. Throws Error on a pattern that nothing matches.
std::vector<ArmPlace> arm_places(const std::vector<std::string>& arguments);

struct ArmOptions {
  std::string metric;                                        // empty: a validation loss, else the loss
  std::string at = "last";                                   // or "best", or a step
  std::optional<bool> larger_is_better;                      // nothing: by the metric's name
  std::vector<std::string> by;                               // settings whose values make the arms
  std::vector<std::pair<std::string, std::string>> where{};  // only runs with these settings
  std::vector<LinePattern> lines{};                          // how lines of text logs read
  std::string seed, rate;                                    // settings; empty: those that are called so
};

/// One arm. Losses are such that smaller is better: a metric of which more is better has the opposite sign.
struct RunArm {
  std::string name;
  Sweep sweep{};                                  // rates without a setting are 0
  std::vector<std::vector<std::string>> seeds{};  // [rate][run], in the order of the sweep's losses
};

/// A run as it was read.
struct ReadRun {
  std::string name, arm, seed;  // no seed: empty
  std::optional<double> learning_rate{};
  int64_t points = 0;    // of the metric
  double last_step = 0;  // NaN without points
  std::string state;     // "failed" or "not ended", with the program's word for it
  double value = 0;      // with which it counts; NaN if it failed
};

struct RunArms {
  std::string metric;
  bool larger_is_better = false;
  double failed_at = kNoLimit;       // of each arm's sweep: what all runs say that one counts with at most
  std::vector<RunArm> arms;          // in the order in which they were named or found
  std::vector<ReadRun> runs{};       // in the order in which they were read
  std::vector<std::string> notes{};  // what a reader should know: runs of different lengths, for instance
};

/// Reads the runs and gathers them. Without names and `by`, the arms are the values of a setting "arm", "variant" or
/// "group", else of the only setting in which the runs differ beside seed and learning rate, else those whose names
/// differ in a last number alone. Throws UsageError if the metric, its direction or the arms are not clear, or a place
/// lies within another, and Error if two runs of an arm share seed and learning rate.
RunArms gather_arms(const std::vector<ArmPlace>& places, const ArmOptions& options);

}  // namespace plumb
