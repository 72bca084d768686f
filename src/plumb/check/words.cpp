#include "plumb/check/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "plumb/base/quantity.h"
#include "plumb/base/text.h"
#include "plumb/check/compared_trials.h"

namespace plumb::check {
namespace {

std::string in_words(const RateEstimate& rate) {
  return fmt::format("{:.2g} (80% interval {:.2g} to {:.2g})", rate.estimate, rate.low, rate.high);
}

/// What the trials say of the configured rate against the best of them, at the last step that both have measured.
std::string compared_with_best(const CheckResult& result) {
  const auto planned = std::find_if(result.trials.begin(), result.trials.end(), [&](const Trial& trial) {
    return trial.learning_rate == result.planned_rate && trial.outcome != TrialOutcome::unknown;
  });
  if (planned == result.trials.end()) return "";
  const Trial* best = best_trial(result.trials, planned->warm_up);
  if (best == nullptr || best->learning_rate == result.planned_rate) return "";
  const auto [own, lowest] = last_losses(*planned, *best);
  if (!(own > lowest)) return "";
  const int64_t step = std::min(planned->steps.back(), best->steps.back());
  return fmt::format("; after {} steps, the trial at {:.2g} was lower by {}", step, best->learning_rate,
                     rounded(own - lowest, 2));
}

std::string configured(const CheckResult& result) {
  if (result.recommended && result.recommended->gain) {
    const Gain& gain = *result.recommended->gain;
    return fmt::format("{:.2g} gives away about {:.2g} nats (80% interval {:.2g} to {:.2g}, from runs of 500 steps){}",
                       result.configured_rate, gain.nats, gain.low, gain.high, compared_with_best(result));
  }
  const char* how = result.verdict == CheckAnswer::trains          ? "trains"
                    : result.verdict == CheckAnswer::needs_warm_up ? "needs a warm-up"
                    : result.verdict == CheckAnswer::unknown       ? "may train or not"
                                                                   : "is not good enough";
  return fmt::format("{:.2g} {}{}", result.configured_rate, how, compared_with_best(result));
}

/// Above which rate training fails, and how trials have.
std::string limit(const CheckResult& result) {
  std::string text = in_words(*result.largest_stable_rate);
  if (result.planned_warm_up > 0) {
    text += result.tried_warm_up == 0 ? fmt::format(", with the warm-up of {} steps, estimated from trials without one",
                                                    with_thousands(result.planned_warm_up))
            : result.tried_warm_up < result.planned_warm_up
                ? fmt::format(", after a warm-up of {} steps; the run has {}", result.tried_warm_up,
                              with_thousands(result.planned_warm_up))
                : fmt::format(", after the warm-up of {} steps", result.tried_warm_up);
    text += fmt::format("; without warm-up {}", in_words(*result.largest_stable_rate_without_warm_up));
  }
  std::set<std::string> manners;
  for (const Trial& trial : result.trials) {
    if (trial.outcome == TrialOutcome::fails) manners.insert(manner_of_failure(trial));
  }
  return text + (manners.empty() ? "; no trial failed" : ", by " + join({manners.begin(), manners.end()}, " or "));
}

/// Whether the planned rate needs a warm-up, of how many steps, and why; empty if no trial tells.
std::string warm_up(const CheckResult& result) {
  const auto failed = std::find_if(result.trials.begin(), result.trials.end(), [&](const Trial& trial) {
    return trial.warm_up == 0 && trial.learning_rate == result.planned_rate && trial.outcome == TrialOutcome::fails;
  });
  if (failed == result.trials.end()) {
    const bool tried = std::any_of(result.trials.begin(), result.trials.end(), [&](const Trial& trial) {
      return trial.warm_up == 0 && trial.learning_rate == result.planned_rate && trial.outcome == TrialOutcome::trains;
    });
    if (!tried) return "";
    const std::string text = fmt::format("{:.2g} also trains without, as far as was tried", result.configured_rate);
    if (!result.recommended || !result.recommended->gain_of_warm_up) return text;
    const Gain& gain = *result.recommended->gain_of_warm_up;
    return text + fmt::format(
                      "; with 200 steps, at about 1.4 times the recommended rate, runs ended {:.2g} nats lower "
                      "(80% interval {:.2g} to {:.2g})",
                      gain.nats, gain.low, gain.high);
  }
  if (result.shortest_warm_up)
    return fmt::format("needed at {:.2g}: {} steps were enough, of those tried; without, it fails by {}",
                       result.configured_rate, *result.shortest_warm_up, manner_of_failure(*failed));
  return fmt::format(
      "{:.2g} fails without one by {}", result.configured_rate,
      failed->on_plateau ? "collapse, which a longer one may prevent" : "divergence, which a warm-up hardly prevents");
}

/// What a change did at the planned rate.
std::string in_words(const Change& change, const CheckResult& result) {
  const Trial& trial = change.trial;
  const bool fails = trial.outcome == TrialOutcome::fails;
  std::string text =
      fmt::format("with {}, {:.2g} {} {}", change.setting, result.configured_rate,
                  fails                                   ? "also fails"
                  : trial.outcome == TrialOutcome::trains ? "trains"
                                                          : "learns slowly",
                  trial.warm_up > 0 ? fmt::format("after {} steps of warm-up", trial.warm_up) : "without a warm-up");
  if (fails) return text + ", by " + manner_of_failure(trial);
  if (!change.gain)
    return text + fmt::format(": after {} steps {} nats below the labels' frequencies", trial.steps.back(),
                              rounded(result.frequencies - trial.losses.back(), 2));
  return text + fmt::format(": after {} steps {} nats {} than the best trial without this", trial.steps.back(),
                            rounded(std::abs(*change.gain), 2), *change.gain < 0 ? "higher" : "lower");
}

}  // namespace

std::string manner_of_failure(const Trial& trial) { return trial.on_plateau ? "collapse" : "divergence"; }

std::vector<Line> lines_of(const CheckResult& result) {
  std::vector<Line> lines;
  if (result.largest_stable_rate) lines.push_back({"configured", configured(result)});
  if (const auto& made = result.recommended) {
    std::string text = fmt::format("{:.2g}{}{}", made->learning_rate,
                                   made->warm_up ? fmt::format(", warm-up {}", with_thousands(*made->warm_up)) : "",
                                   recommends_as_configured(result) ? ", as configured" : "");
    if (!made->tried) text += ", an estimate that no trial confirms";
    if (made->loss_above_best)
      text += fmt::format("; such rates ended {:.2f} nats above the best on average, nine of ten at most {:.2f}",
                          *made->loss_above_best, *made->most_loss_above_best);
    lines.push_back({"recommended", text});
  }
  if (result.largest_stable_rate) lines.push_back({"largest stable rate", limit(result)});
  if (const std::string text = warm_up(result); !text.empty()) lines.push_back({"warm-up", text});
  for (const Change& change : result.changes) lines.push_back({"change", in_words(change, result)});
  // A library's loop may not say how long it is.
  constexpr int64_t kKnown = int64_t{1} << 40;
  const bool known = result.planned_steps < kKnown;
  if (known)
    lines.push_back(
        {"run",
         fmt::format("{} steps{}{}", with_thousands(result.planned_steps),
                     result.planned_seconds > 0 ? ", about " + duration(result.planned_seconds) : "",
                     result.peak_memory > 0 ? fmt::format("; {} of memory", with_bytes(result.peak_memory)) : "")});
  const double share = static_cast<double>(result.cost.gradients) / static_cast<double>(result.planned_steps);
  lines.push_back({"cost", fmt::format("{} gradients{}, {}", with_thousands(result.cost.gradients),
                                       known ? fmt::format(" ({:.2g}% of the run)", 100 * share) : "",
                                       duration(result.cost.seconds))});
  return lines;
}

}  // namespace plumb::check
