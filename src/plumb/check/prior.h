// The guess about the largest stable rate before any trial.
#pragma once

#include <optional>

#include "plumb/check/alarm.h"
#include "plumb/check/stable_rate.h"

namespace plumb::check {

struct Prior {
  RateBelief belief;
  std::optional<double> critical_rate;  // η_c
  bool signs = true;                    // the optimizer's (SearchPlan::signs)
};

/// From the critical rate of the run's first step if it has one; check/stable_rate.h.
Prior first_belief(const Evidence& evidence);

}  // namespace plumb::check
