// Is one arm of runs better than another, and how sure is that?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/analysis/two_arms.h"
#include "plumb/base/config.h"
#include "plumb/judge/arms.h"

namespace plumb {

/// What an arm ends with at its best learning rate, in the metric's unit.
struct JudgedArm {
  std::string name;
  int64_t runs = 0;  // at this rate
  int64_t failed = 0;
  double mean = 0;                        // of those that did not fail; NaN without any
  double deviation = 0;                   // between seeds; NaN with fewer than two
  std::optional<double> learning_rate{};  // if the arm has a sweep
  int64_t rates = 1;                      // in its sweep
};
void describe(Fields& field, JudgedArm& arm);

/// A verdict on "`arm` is better than `baseline` by more than the margin".
struct JudgedPair {
  std::string baseline;
  std::string arm;
  std::string outcome;    // to_string(Outcome)
  Interval gain;          // of the arm; positive: better
  double confidence = 0;  // of the interval
  std::string rule;
  std::string reason;  // why it is undecided, or what else to know; may be empty
  std::optional<int64_t> seeds_needed{};
  bool one_run = false;  // one of the arms is one run: the interval is that of one new run of the other
};
void describe(Fields& field, JudgedPair& pair);

struct ArmVerdicts {
  std::string metric;
  bool larger_is_better = false;
  std::string at;  // "last", "best" or a step
  double margin = 0;
  /// Two runs that differ in the seed alone differ by less in 95 of 100 cases; NaN if no arm has two runs.
  double noise_floor = 0;
  std::vector<JudgedArm> arms;
  std::vector<JudgedPair> pairs;  // every other arm against the baseline
  std::vector<std::string> notes;
  std::vector<ReadRun> runs{};
};
void describe(Fields& field, ReadRun& run);
void describe(Fields& field, ArmVerdicts& verdicts);

/// Judges every arm against the baseline, by default the first, each at its own best learning rate. Several comparisons
/// share the error of the rule by Holm's procedure (1979). Throws UsageError if an arm is missing, and Error if
/// `by_seed` and the arms have different seeds.
ArmVerdicts judge_arms(const RunArms& arms, const ArmRule& rule, const std::string& at = "last",
                       const std::string& baseline = "");

/// The exit status of `plumb judge`: 0 if an arm is better, 4 if nothing is decided, 3 otherwise.
int exit_status(const ArmVerdicts& verdicts);

/// Tables and sentences for people.
std::string verdicts_text(const ArmVerdicts& verdicts);

}  // namespace plumb
