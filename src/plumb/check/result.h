// What a check answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/check/stable_rate.h"
#include "plumb/check/trial.h"
#include "plumb/train/finding.h"

namespace plumb::check {

/// trains: as configured; other_rate: not at the configured rate; needs_warm_up: at that rate only with a warm-up;
/// cannot: at no rate that was tried, with or without; unknown: the budget does not suffice to tell.
enum class CheckAnswer { trains, other_rate, needs_warm_up, cannot, unknown };
std::string to_string(CheckAnswer answer);

/// What to set in its place.
struct Recommendation {
  double learning_rate = 0;        // train.learning_rate
  std::optional<int64_t> warm_up;  // train.warm_up, in steps; empty: the schedule has none, or another one
  std::string schedule;            // train.schedule; empty: as planned
  bool tried = true;               // whether a trial carries it; otherwise an estimate
  /// By how much the training loss ends above that of the best rate, in nats per label: on average, and at most in nine
  /// of ten runs; and how far below that of the configured one. Empty if no measured run tells.
  std::optional<double> loss_above_best, most_loss_above_best;
  std::optional<Gain> gain, gain_of_warm_up;  // the latter of a run that trains without one
};
/// "train.learning_rate = 0.002, train.warm_up = 100".
std::string to_string(const Recommendation& recommendation);
void describe(Fields& field, Recommendation& recommendation);

struct Cost {
  int64_t gradients = 0;
  double seconds = 0;
};
void describe(Fields& field, Cost& cost);

/// Another setting, tried at the planned rate.
struct Change {
  std::string setting;  // as for --set
  Trial trial;
  std::optional<double> gain{};  // nats by which it ended below the best trial without the change
};
void describe(Fields& field, Change& change);

/// Rates are peak rates of the schedule, in its own unit, unless stated otherwise.
struct CheckResult {
  CheckAnswer verdict = CheckAnswer::unknown;
  std::string checked;  // the model, its size, the optimizer, the batch and the steps
  std::string answer;   // what to do, in one sentence
  double planned_rate = 0;
  double configured_rate = 0;   // train.learning_rate, whose unit a schedule's factor may change
  int64_t planned_warm_up = 0;  // steps
  int64_t planned_steps = 0;
  /// Of the trials with warm-up: shorter than planned if the budget asks for it, 0 if there are none.
  int64_t tried_warm_up = 0;
  std::optional<RateEstimate> largest_stable_rate;  // with the planned warm-up
  std::optional<RateEstimate> largest_stable_rate_without_warm_up;
  std::optional<double> critical_rate;  // of the optimizer's first step (analysis/critical_rate.h)
  std::optional<Recommendation> recommended;
  std::optional<int64_t> shortest_warm_up;  // of those tried, the shortest with which the planned rate trains
  double frequencies = 0;                   // Baselines::frequencies
  Cost cost;
  double planned_seconds = 0;  // of the whole run at the trials' speed; 0 without a trial
  double peak_memory = 0;      // bytes of this process, which has run the longest batch
  std::vector<Finding> findings;
  std::vector<Trial> trials;
  std::vector<Change> changes;  // of a configuration that does not train (check/changes.h)
};
void describe(Fields& field, CheckResult& result);

/// Whether it recommends the rate and the warm-up that are configured.
bool recommends_as_configured(const CheckResult& result);

/// The exit status of `plumb check`: 0: trains; 3: another rate, a warm-up, or cannot; 4: unknown.
int exit_status(const CheckResult& result);

}  // namespace plumb::check
