#include "plumb/check/compared_trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace plumb::check {
namespace {

constexpr double kLower = 8;  // the factor between a rate and one far below
constexpr double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace

std::pair<double, double> last_losses(const Trial& first, const Trial& second) {
  const size_t at = std::min(first.losses.size(), second.losses.size()) - 1;
  return {first.losses[at], second.losses[at]};
}

bool is_informative(const Trial& trial, int64_t warm_up) {
  return trial.warm_up == warm_up && trial.outcome != TrialOutcome::unknown;
}

void excuse_slower_trials(std::vector<Trial>& trials) {
  for (Trial& trial : trials) {
    if (trial.outcome != TrialOutcome::fails || !trial.on_plateau) continue;
    const auto above = std::find_if(trials.begin(), trials.end(), [&](const Trial& other) {
      return other.outcome == TrialOutcome::trains && other.learning_rate > trial.learning_rate &&
             other.warm_up <= trial.warm_up;
    });
    if (above == trials.end()) continue;
    trial.outcome = TrialOutcome::slow;
    trial.because += fmt::format("; but {:.2g} has left this plateau", above->learning_rate);
  }
}

const Trial* best_trial(const std::vector<Trial>& trials, int64_t warm_up) {
  const Trial* best = nullptr;
  for (const Trial& trial : trials) {
    if (!is_informative(trial, warm_up) || trial.outcome == TrialOutcome::fails) continue;
    if (best == nullptr) {
      best = &trial;
    } else if (const auto [own, other] = last_losses(trial, *best); own < other) {
      best = &trial;
    }
  }
  return best;
}

bool counts_as_failed(const Trial& trial, const Trial* best, const SearchPlan& plan) {
  if (trial.outcome == TrialOutcome::fails) return true;
  if (best == nullptr || trial.learning_rate <= best->learning_rate || !plan.judges_relative_gain) return false;
  const auto [own, other] = last_losses(trial, *best);
  const double gain = plan.reference - other;
  return gain > plan.gain_to_compare && plan.reference - own < gain / 2;
}

double bound_by_lower_trials(const std::vector<Trial>& trials, const SearchPlan& plan) {
  const double above = std::exp2(1.5), clearly = plan.gain_to_compare / 2;
  double bound = kInfinite;
  if (plan.step_length == StepLength::gradient || !plan.judges_relative_gain) return bound;
  for (const Trial& lower : trials) {
    for (const Trial& higher : trials) {
      if (lower.warm_up != higher.warm_up || lower.learning_rate >= higher.learning_rate) continue;
      if (lower.outcome == TrialOutcome::fails || higher.outcome == TrialOutcome::fails) continue;
      if (lower.losses.empty() || higher.losses.empty()) continue;
      const auto [own, other] = last_losses(lower, higher);
      if (own < other - clearly) bound = std::min(bound, lower.learning_rate * above);
    }
  }
  return bound;
}

bool was_stable(const std::vector<Trial>& trials, double rate, int64_t warm_up, const SearchPlan& plan) {
  const Trial* best = best_trial(trials, warm_up);
  int64_t more = 0;
  for (const Trial& trial : trials) {
    if (!is_informative(trial, warm_up) || trial.learning_rate != rate) continue;
    more += counts_as_failed(trial, best, plan) ? -1 : 1;
  }
  return more > 0;
}

double lower_control_rate(const std::vector<Trial>& trials, int64_t warm_up, const SearchPlan& plan) {
  const Trial* best = best_trial(trials, warm_up);
  if (best == nullptr) return 0;
  const Trial* lowest = best;
  for (const Trial& trial : trials) {
    if (is_informative(trial, warm_up) && trial.learning_rate < lowest->learning_rate) lowest = &trial;
  }
  if (lowest->outcome == TrialOutcome::fails || lowest->outcome == TrialOutcome::unmoved) return 0;
  const auto [own, other] = last_losses(*lowest, *best);
  const double gain = plan.reference - other;
  const bool on_plateau = plan.judges_relative_gain && gain <= 0 && gain > -plan.gain_to_compare;
  const bool little = gain < plan.gain_without_control || on_plateau;
  return little && own - other <= std::abs(gain) / 2 ? lowest->learning_rate / kLower : 0;
}

double rate_below_failures(const std::vector<Trial>& trials, int64_t warm_up) {
  double lowest = kInfinite;
  int64_t failures = 0;
  for (const Trial& trial : trials) {
    if (!is_informative(trial, warm_up)) continue;
    if (trial.outcome != TrialOutcome::fails) return kInfinite;
    lowest = std::min(lowest, trial.learning_rate);
    ++failures;
  }
  return failures < 3 ? kInfinite : lowest / kLower;
}

std::optional<double> least_gradient_at_input(const std::vector<Trial>& trials) {
  std::optional<double> least;
  for (const Trial& trial : trials) {
    if (trial.outcome != TrialOutcome::fails || trial.warm_up > 0 || !trial.gradient_at_input) continue;
    least = std::min(least.value_or(kInfinite), *trial.gradient_at_input);
  }
  return least;
}

double smallest_rate(const std::vector<Trial>& trials) {
  double smallest = kInfinite;
  for (const Trial& trial : trials) {
    if (trial.outcome != TrialOutcome::unknown) smallest = std::min(smallest, trial.learning_rate);
  }
  return smallest;
}

}  // namespace plumb::check
