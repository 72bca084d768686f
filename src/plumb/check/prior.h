// The guess about the largest stable rate before any trial.
#pragma once

#include <optional>

#include "plumb/check/alarm.h"
#include "plumb/check/stable_rate.h"

namespace plumb::check {

struct Prior {
  RateBelief belief;
  std::optional<double> critical_rate;  // η_c
};

/// The belief from the critical rate η_c of the run's first step, above which that step raises the loss of the batches
/// (analysis/critical_rate.h): η₅₀ ≈ c·η_c with a wide deviation, as η_c alone ranks residual schemes poorly under
/// Adam. Without a critical rate, the belief is that about the planned peak rate.
Prior first_belief(const Evidence& evidence);

}  // namespace plumb::check
