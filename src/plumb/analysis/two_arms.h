// Whether one arm of runs ends with a smaller loss than another, how sure that is, and how many seeds would tell. The
// question has a direction, so each verdict may err in 5% of all cases: the interval of the difference has 90%. Runs
// may be looked at after every seed, if their largest number was planned: the looks then share the 5%.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plumb/analysis/rules.h"

namespace plumb {

struct ArmRule {
  double margin = 0;            // ≥ 0: only a gain of more than this counts
  double error = 0.05;          // the largest probability of a wrong verdict
  bool by_seed = false;         // run i of both arms shares its seed: differences are formed seed by seed
  int64_t planned_seeds = 0;    // if positive: the arms are judged after each seed, from the third to this one
  double failed_at = kNoLimit;  // the loss of a run that has learned nothing, with which it counts at most
};

struct ArmComparison {
  Judgment judgment{};   // of the gain, baseline − arm
  double level = 0;      // the error that this look may make, of each verdict
  double deviation = 0;  // between runs: √((s₁² + s₂²)/2), or of differences by seed divided by √2; NaN if
                         // unknown
  bool one_run = false;  // of an arm, judged by the deviation of the other
};

/// Compares final losses, infinite for a run that failed (analysis/rules.h, `judge_difference`). The interval of the
/// gain is Welch's (1947) unless `by_seed`, then Student's. Welch's degrees of freedom are rounded down, and those of
/// the smaller arm if the arms have different sizes, since his err more often than they say with so few runs. One run
/// against three or more of the other arm has the prediction interval of one new run of that arm, unless looks are
/// planned. Throws Error on arms without runs, on arms of different sizes if `by_seed`, and on more runs than planned.
ArmComparison compare_arms(const std::vector<double>& baseline_losses, const std::vector<double>& arm_losses,
                           const ArmRule& rule);

/// Of an undecided comparison: the number of seeds of each arm with which it would be decided in 80 of 100 cases, if
/// gain and deviation are as estimated. Nothing if that takes more than 1000, or if more seeds would not tell: the
/// noise is not known, or runs failed.
std::optional<int64_t> seeds_needed(const ArmComparison& comparison, const ArmRule& rule);

/// The region of the gain for a rule's claim: above the margin, against no gain.
Region gain_region(const ArmRule& rule);

/// What each look, from the third seed to the last planned one, may err: after n of N seeds, looks have spent
/// error · (n/N)³ (Lan & DeMets 1983, Kim & DeMets 1987). The levels are those of Student's t test with which 200,000
/// simulated pairs of equal arms are called different as often as that. Throws Error on fewer than 3 or more than 50
/// planned seeds.
std::vector<double> look_levels(int64_t planned_seeds, double error, bool by_seed);

/// 95 of 100 pairs of runs that differ in the seed alone differ by less: t · √2 · s, with the deviation s within groups
/// of runs that do. NaN if no group has two runs that did not fail.
double noise_floor(const std::vector<std::vector<double>>& groups);

}  // namespace plumb
