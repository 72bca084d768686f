// The search for the largest stable rate of a planned run by trials, and what it says about the run. Who carries out
// the trials is left open: they may be those of a module of PyTorch.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "plumb/check/budget.h"
#include "plumb/check/result.h"
#include "plumb/check/schedule.h"
#include "plumb/check/stable_rate.h"
#include "plumb/check/trial.h"

namespace plumb::check {

/// What the search has to know of the planned run.
struct SearchPlan {
  PlannedSchedule schedule;
  double configured_rate = 0;         // train.learning_rate
  std::string schedule_with_warm_up;  // train.schedule with a linear warm-up; empty: as planned
  bool resumes = false;               // a run that goes on keeps its settings
  double reference = 0;               // the loss below which gains of trials are compared
  double gain_to_compare = 0.2;       // they are not compared before the best has gained as much
  double gain_without_control = 0;    // controls at lower rates are tried while the best has gained less
  bool judges_relative_gain = true;   // whether a trial with less than half of the best one's gain counts as failed
  StepLength step_length = StepLength::sign;
  uint64_t seed = 1;  // of the first trial; the others count up
  Budget budget;
  double seconds = 0;               // of the budget, spent before
  double seconds_per_gradient = 0;  // as far as is known before any trial
};

struct SearchHooks {
  std::function<Trial(const TrialPlan&, int64_t steps)> attempt;  // a trial of at most these steps
  std::function<bool()> stop{};  // asked between trials; true ends the search with what is known
  std::function<void(const std::string& what, double share)> progress{};  // the next trial; the share of the budget
};

/// Tries rates within what the budget leaves after `result.cost`, and fills in `result` from `verdict` to
/// `shortest_warm_up`, its cost, `planned_seconds` and `trials`. `before`: the belief before any trial.
void search_rates(const SearchPlan& plan, RateBelief before, const SearchHooks& hooks, CheckResult& result);

}  // namespace plumb::check
