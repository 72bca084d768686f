// A trial: the first steps of a planned run at some learning rate, to see whether it trains.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/config.h"
#include "plumb/check/verdict.h"

namespace plumb::check {

struct TrialPlan {
  double learning_rate = 0;
  int64_t warm_up = 0;  // steps of linear warm-up; the rate is constant afterward
  int64_t seed = 1;     // of random weights, the order of the data, and dropout
};

/// What a trial showed.
struct Trial {
  double learning_rate = 0;
  int64_t warm_up = 0;
  int64_t seed = 0;
  TrialOutcome outcome = TrialOutcome::unknown;
  bool on_plateau = false;                  // at its end it knows no more than the labels' frequencies, or hardly
  std::optional<double> gradient_at_input;  // then; check/gradient.h
  std::string because;                      // a sentence with the numbers behind the outcome
  std::vector<int64_t> steps;               // at which the loss was measured, from 0
  std::vector<double> losses;               // there: the mean negative log-likelihood per label of the probe
  int64_t steps_taken = 0;
  double seconds = 0;
};
void describe(Fields& field, Trial& trial);

}  // namespace plumb::check
