// The guess about the largest stable rate before any trial.
#pragma once

#include <optional>
#include <vector>

#include "plumb/check/stable_rate.h"
#include "plumb/check/subject.h"

namespace plumb::check {

struct Prior {
  RateBelief belief;
  std::optional<double> critical_rate;  // η_c
};

/// The belief from the critical rate η_c of the optimizer's first step, above which that step raises the loss of the
/// batches (analysis/critical_rate.h): η₅₀ ≈ c·η_c with a wide deviation, as η_c alone ranks residual schemes poorly
/// under Adam. Without a critical rate, the belief is that about the planned `peak_rate`.
Prior first_belief(const Subject& subject, Model& model, const std::vector<Batch>& batches, double peak_rate);

}  // namespace plumb::check
