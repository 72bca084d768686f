// The guess about the largest stable rate before any trial.
#pragma once

#include <optional>

#include "plumb/check/stable_rate.h"
#include "plumb/train/alarm.h"

namespace plumb::check {

struct Prior {
  RateBelief belief;
  std::optional<double> critical_rate;  // η_c
  StepLength step_length = StepLength::sign;
};

/// From the critical rate of the run's first step if it has one; check/stable_rate.h.
Prior first_belief(const PlannedRun& planned);

}  // namespace plumb::check
