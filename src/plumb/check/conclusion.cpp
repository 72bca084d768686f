#include "plumb/check/conclusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>

#include "plumb/base/quantity.h"
#include "plumb/base/text.h"
#include "plumb/check/compared_trials.h"

namespace plumb::check {
namespace {

constexpr double kSure = 0.8;         // probability of an answer
constexpr double kGiveUpFactor = 64;  // the factor by which rates were lowered in vain when nothing trains
constexpr int64_t kTelling = 30;      // steps: a trial's outcome takes four losses, ten steps apart

bool any_stable(const std::vector<Trial>& trials) {
  return std::any_of(trials.begin(), trials.end(), [](const Trial& trial) {
    return trial.outcome == TrialOutcome::trains || trial.outcome == TrialOutcome::slow;
  });
}

/// Whether every trial has failed, down to rates so low that no lower one would help.
bool all_failed(const std::vector<Trial>& trials, double peak) {
  const bool all = std::all_of(trials.begin(), trials.end(), [](const Trial& trial) {
    return trial.outcome == TrialOutcome::fails || trial.outcome == TrialOutcome::unknown;
  });
  return all && peak > 0 && smallest_rate(trials) <= peak / kGiveUpFactor;
}

/// The rate to train with, in the unit of the schedule's peak.
double best_guess(const SearchPlan& plan, const SearchState& known) {
  return rate_to_recommend(known.belief.estimate().estimate, plan.schedule.peak, plan.step_length);
}

/// Whether all steps of the planned run change the weights less than a few at the best guess. A trial at the planned
/// rate that has learned something knows better: the size of some optimizers' steps is not that of the rate.
bool moves_too_little(const SearchPlan& plan, const SearchState& known) {
  constexpr double kFew = 10;
  const bool learned = std::any_of(known.trials.begin(), known.trials.end(), [&](const Trial& trial) {
    return trial.learning_rate == plan.schedule.peak && trial.outcome == TrialOutcome::trains;
  });
  return plan.judges_relative_gain && !learned &&
         plan.schedule.peak * static_cast<double>(plan.schedule.steps) < kFew * best_guess(plan, known);
}

/// What each ending answers, and whether it recommends a rate.
struct Meaning {
  Ending ending;
  CheckAnswer answer;
  bool recommends;
};
constexpr Meaning kMeanings[] = {{Ending::run_too_short, CheckAnswer::unknown, false},
                                 {Ending::budget_too_small, CheckAnswer::unknown, false},
                                 {Ending::nothing_trains, CheckAnswer::cannot, false},
                                 {Ending::nothing_trains_so_far, CheckAnswer::other_rate, true},
                                 {Ending::nothing_trains_yet, CheckAnswer::unknown, false},
                                 {Ending::moves_too_little, CheckAnswer::other_rate, true},
                                 {Ending::not_below_frequencies, CheckAnswer::unknown, false},
                                 {Ending::trains, CheckAnswer::trains, true},
                                 {Ending::needs_warm_up, CheckAnswer::needs_warm_up, true},
                                 {Ending::fails, CheckAnswer::other_rate, true},
                                 {Ending::longer_warm_up_may_do, CheckAnswer::unknown, true},
                                 {Ending::near_the_edge, CheckAnswer::unknown, true}};

const Meaning& meaning_of(Ending ending) {
  return *std::find_if(std::begin(kMeanings), std::end(kMeanings),
                       [ending](const Meaning& each) { return each.ending == ending; });
}

/// The rate to recommend: the best guess, if a trial at it or above has trained, or one below makes it sure; otherwise
/// the highest at which one has trained, and 0 if none has, or if a stable one at a higher rate has learned more. What
/// is still on the plateau has not trained.
double carried_rate(const SearchPlan& plan, const SearchState& known) {
  const Trial* carrier = nullptr;
  for (const Trial& trial : known.trials) {
    const bool slow = trial.outcome == TrialOutcome::slow && !trial.on_plateau;
    if ((trial.outcome != TrialOutcome::trains && !slow) || trial.warm_up > plan.schedule.warm_up) continue;
    if (counts_as_failed(trial, best_trial(known.trials, trial.warm_up), plan)) continue;
    if (carrier == nullptr || trial.learning_rate > carrier->learning_rate) carrier = &trial;
  }
  if (carrier == nullptr) return 0;
  const double highest = carrier->learning_rate, guess = best_guess(plan, known);
  if (guess <= std::max(highest, known.belief.quantile(1 - kSure))) return guess;
  const bool surpassed = std::any_of(known.trials.begin(), known.trials.end(), [&](const Trial& trial) {
    if (trial.outcome != TrialOutcome::slow || trial.learning_rate <= highest) return false;
    const auto [own, of_carrier] = last_losses(trial, *carrier);
    return own < of_carrier;
  });
  return surpassed ? 0 : highest;
}

/// "0.0044 with 104 steps of warm-up".
std::string in_words(const Recommendation& made) {
  return fmt::format(
      "{:.2g}{}", made.learning_rate,
      made.warm_up.value_or(0) > 0 ? fmt::format(" with {} steps of warm-up", with_thousands(*made.warm_up)) : "");
}

std::string about(double rate) { return fmt::format("the largest stable rate is about {:.2g}", rate); }

/// `made`: what is recommended.
std::string sentence(Ending ending, const SearchPlan& plan, const SearchState& known,
                     const std::optional<Recommendation>& made) {
  const PlannedSchedule& planned = plan.schedule;
  const RateEstimate stable = known.belief.estimate();
  const double smallest = smallest_rate(known.trials);
  switch (ending) {
    case Ending::run_too_short:
      return fmt::format("cannot tell: a run of {} steps is too short to judge", planned.steps);
    case Ending::budget_too_small:
      return fmt::format("cannot tell within this budget: give at least {} gradients", known.least_gradients);
    case Ending::nothing_trains:
      return fmt::format("does not train: no trial learned anything, at rates down to {:.2g}", smallest);
    case Ending::nothing_trains_so_far:
      return fmt::format("does not train at {:.2g}: no trial learned anything, at rates down to {:.2g}; {}",
                         plan.configured_rate, smallest / planned.factor,
                         made ? fmt::format("try {}, an estimate", in_words(*made)) : "lower ones were not tried");
    case Ending::nothing_trains_yet:
      return fmt::format("cannot tell within this budget: no trial learned anything, at rates down to {:.2g}",
                         smallest);
    case Ending::moves_too_little:
      return fmt::format("{} {:.2g}, {} steps of which change the weights less than ten at {:.2g}",
                         made ? fmt::format("use {} instead of", in_words(*made)) : "learns next to nothing at",
                         plan.configured_rate, with_thousands(planned.steps), best_guess(plan, known));
    case Ending::not_below_frequencies:
      return fmt::format(
          "cannot tell within this budget: no trial has come below {:.2f}, what knowing only how frequent each label "
          "is gives",
          plan.reference);
    case Ending::trains:
      if (!made)
        return fmt::format("trains as configured: {}, {} times the configured one", about(stable.estimate),
                           rounded(stable.estimate / planned.peak, 2));
      if (made->learning_rate == plan.configured_rate)
        return (made->warm_up.value_or(planned.warm_up) == planned.warm_up ? "trains as configured: keep " : "use ") +
               in_words(*made);
      return fmt::format("use {} instead of {:.2g}, which trains{}", in_words(*made), plan.configured_rate,
                         made->gain ? fmt::format(": about {:.2g} nats lower", made->gain->nats) : "");
    case Ending::needs_warm_up:
      return fmt::format("trains only with warm-up: {}{} steps were enough at {:.2g}",
                         made ? fmt::format("use {}; ", in_words(*made)) : "", *known.warm_up_that_helps, planned.peak);
    case Ending::fails:
      if (!made)
        return fmt::format("does not train at {:.2g}: no trial confirms another rate; a larger budget may find one",
                           plan.configured_rate);
      return made->tried
                 ? fmt::format("use {} instead of {:.2g}, which does not train", in_words(*made), plan.configured_rate)
                 : fmt::format("does not train at {:.2g}; try {}, an estimate that no trial confirms",
                               plan.configured_rate, in_words(*made));
    case Ending::longer_warm_up_may_do:
      return fmt::format(
          "cannot tell within this budget: {}, below {:.2g}, but the planned warm-up of {} steps may be enough",
          known.tried_warm_up > 0
              ? fmt::format("after one of {} steps, {}", known.tried_warm_up, about(stable.estimate))
              : "without warm-up, " + about(known.without_warm_up.estimate().estimate),
          planned.peak, with_thousands(planned.warm_up));
    case Ending::near_the_edge:
      break;
  }
  return fmt::format(
      "cannot tell within this budget: the largest stable rate lies between {:.2g} and {:.2g}, and the configured one "
      "is {:.2g}{}",
      stable.low, stable.high, planned.peak, fails_at_plan(known.belief, plan) ? ", at which a trial was stable" : "");
}

/// `warm_up`: in place of the planned one.
Recommendation recommend(const SearchPlan& plan, double rate, std::optional<int64_t> warm_up = {}) {
  Recommendation made{.learning_rate = rate, .warm_up = warm_up, .schedule = {}};
  if (!warm_up && plan.schedule_with_warm_up.empty()) made.warm_up = plan.schedule.warm_up;
  if (warm_up) made.schedule = plan.schedule_with_warm_up;
  return made;
}

/// Where the planned rate fails and no trial carries another one: the best guess, if no trial has failed at it or
/// below, and none has hardly moved at it or above. 0 otherwise.
double estimated_rate(Ending ending, const SearchPlan& plan, const SearchState& known) {
  if ((ending != Ending::fails && ending != Ending::nothing_trains_so_far) || !plan.judges_relative_gain) return 0;
  const double guess = best_guess(plan, known);
  const bool contradicted = std::any_of(known.trials.begin(), known.trials.end(), [&](const Trial& trial) {
    return (trial.outcome == TrialOutcome::fails && trial.learning_rate <= guess) ||
           (trial.outcome == TrialOutcome::unmoved && trial.learning_rate >= guess);
  });
  return contradicted ? 0 : guess;
}

/// What to set; a run that goes on keeps its settings.
std::optional<Recommendation> recommendation(Ending ending, const SearchPlan& plan, const SearchState& known) {
  if (plan.resumes || !meaning_of(ending).recommends) return std::nullopt;
  if (ending == Ending::needs_warm_up) return recommend(plan, plan.configured_rate, 2 * *known.warm_up_that_helps);
  // Trained weights are to change as was planned.
  if (ending == Ending::trains && !plan.judges_relative_gain) return recommend(plan, plan.configured_rate);
  const double carried = carried_rate(plan, known);
  double rate = carried > 0 ? carried : estimated_rate(ending, plan, known);
  if (rate == 0) return std::nullopt;
  if (const double bound = bound_by_lower_trials(known.trials, plan); rate > bound)
    rate = planned_if_as_good(plan.schedule.peak, bound);
  Recommendation made =
      recommend(plan, rate == plan.schedule.peak ? plan.configured_rate : rate / plan.schedule.factor);
  made.tried = carried > 0;
  const bool in_nats = plan.gain_without_control == 0;  // search.h
  if (made.tried && in_nats && plan.judges_relative_gain && meaning_of(ending).answer != CheckAnswer::unknown) {
    std::tie(made.loss_above_best, made.most_loss_above_best) = loss_above_best(plan.step_length);
    if (ending == Ending::trains) made.gain = gain_of_recommended(plan.schedule.peak, rate);
    if (ending == Ending::trains && plan.schedule.warm_up == 0)
      made.gain_of_warm_up = gain_of_warm_up(plan.step_length);
  }
  return made;
}

/// Recommends a shorter warm-up if the planned one takes most of the run, and says so at the end of the answer.
std::string shorten_warm_up(std::optional<Recommendation>& made, const PlannedSchedule& planned) {
  if (!made || 2 * planned.warm_up <= planned.steps) return "";
  const int64_t usual = std::max<int64_t>(planned.steps / 10, 1);
  made->warm_up = usual;
  return fmt::format("; its warm-up takes {} of {} steps, where {} are usual", with_thousands(planned.warm_up),
                     with_thousands(planned.steps), with_thousands(usual));
}

}  // namespace

bool trains_at_plan(const RateBelief& belief, const SearchPlan& plan) {
  return plan.schedule.peak > 0 && belief.quantile(1 - kSure) > plan.schedule.peak;
}

bool fails_at_plan(const RateBelief& belief, const SearchPlan& plan) {
  return belief.quantile(kSure) < plan.schedule.peak;
}

Ending ending_of(const SearchPlan& plan, const SearchState& known) {
  const PlannedSchedule& planned = plan.schedule;
  if (known.informative == 0) return planned.steps < kTelling ? Ending::run_too_short : Ending::budget_too_small;
  const bool shortened = known.tried_warm_up < planned.warm_up;
  const bool fails = fails_at_plan(known.belief, plan);
  if (all_failed(known.trials, planned.peak)) return Ending::nothing_trains;
  if (!any_stable(known.trials))
    return fails && !shortened ? Ending::nothing_trains_so_far : Ending::nothing_trains_yet;
  if (trains_at_plan(known.belief, plan)) {
    if (moves_too_little(plan, known)) return Ending::moves_too_little;
    const bool compares = plan.gain_without_control == 0;
    return compares && lower_control_rate(known.trials, known.tried_warm_up, plan) > 0 ? Ending::not_below_frequencies
                                                                                       : Ending::trains;
  }
  if (planned.warm_up == 0 && known.warm_up_that_helps) return Ending::needs_warm_up;
  if (fails && !was_stable(known.trials, planned.peak, known.tried_warm_up, plan))
    return shortened ? Ending::longer_warm_up_may_do : Ending::fails;
  return Ending::near_the_edge;
}

Conclusion conclude(const SearchPlan& plan, const SearchState& known) {
  const Ending ending = ending_of(plan, known);
  Conclusion conclusion{.verdict = meaning_of(ending).answer,
                        .recommended = recommendation(ending, plan, known),
                        .shortest_warm_up = known.warm_up_that_helps};
  const std::string shortened = ending == Ending::trains ? shorten_warm_up(conclusion.recommended, plan.schedule) : "";
  conclusion.answer = sentence(ending, plan, known, conclusion.recommended) + shortened;
  if (ending != Ending::trains) return conclusion;
  if (plan.schedule.warm_up > 0) {
    if (trains_at_plan(known.without_warm_up, plan)) {
      conclusion.shortest_warm_up = 0;
    } else if (known.tried_warm_up > 0 && !conclusion.shortest_warm_up) {
      conclusion.shortest_warm_up = known.tried_warm_up;
    }
  }
  return conclusion;
}

}  // namespace plumb::check
