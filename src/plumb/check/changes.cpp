#include "plumb/check/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/check/compared_trials.h"
#include "plumb/check/trials.h"

namespace plumb::check {
namespace {

/// The changes that may help, as assignments of --set, the most promising first. `collapse`: whether trials have failed
/// because all tokens became alike (docs/findings/post-ln.md: small values, the residual scheme; first-steps.md: β₂).
std::vector<std::string> changes_for(const RunConfig& run, bool collapse) {
  std::vector<std::string> changes;
  const auto change = [&](bool applies, std::string setting) {
    if (applies) changes.push_back(std::move(setting));
  };
  change(!collapse && run.model.qk_norm == "none", R"(model.qk_norm = "layernorm")");
  change(run.model.initialization != "small-init", R"(model.initialization = "small-init")");
  change(run.model.residual != "pre-ln", R"(model.residual = "pre-ln")");
  const bool adam = run.train.optimizer == "adam" || run.train.optimizer == "adamw";
  change(collapse && adam, fmt::format("train.{}.beta2 = 0.9", run.train.optimizer));
  return changes;
}

/// Empty if the setting does not go together with the others.
std::optional<Subject> changed(const Subject& subject, const std::string& setting) {
  try {
    return open_subject(read_run_config(Config::from_string(setting, "a change"), subject.config));
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The nats by which the changed trial ended below the best one without the change.
std::optional<double> gain_of(const Trial& trial, const CheckResult& result) {
  const Trial* best = best_trial(result.trials, trial.warm_up);
  if (best == nullptr || trial.losses.empty()) return std::nullopt;
  const auto [own, other] = last_losses(trial, *best);
  return std::isfinite(own) && std::isfinite(other) ? std::optional(other - own) : std::nullopt;
}

}  // namespace

void try_changes(const Subject& subject, int64_t most_gradients, const std::function<bool()>& stop,
                 CheckResult& result) {
  if (result.verdict == CheckAnswer::trains || !begins_at_random(subject)) return;
  int64_t steps = 0;  // at the full rate
  bool collapse = false;
  for (const Trial& trial : result.trials) {
    steps = std::max(steps, trial.steps_taken - trial.warm_up);
    collapse = collapse || (trial.outcome == TrialOutcome::fails && trial.on_plateau);
  }
  if (steps < kBriefTrial || !(result.planned_rate > 0)) return;
  const TrialPlan plan{.learning_rate = result.planned_rate, .warm_up = result.tried_warm_up};
  int64_t left = most_gradients;
  const Change* best = nullptr;
  for (const std::string& setting : changes_for(subject.config, collapse)) {
    if (left < steps + plan.warm_up || stop()) break;
    const std::optional<Subject> with_change = changed(subject, setting);
    if (!with_change) continue;
    Change change{setting, Trials(*with_change, stop).run(plan, steps + plan.warm_up)};
    left -= change.trial.steps_taken;
    result.cost.gradients += change.trial.steps_taken;
    result.cost.seconds += change.trial.seconds;
    if (change.trial.outcome == TrialOutcome::unknown) continue;
    change.gain = gain_of(change.trial, result);
    result.changes.push_back(std::move(change));
  }
  for (const Change& change : result.changes) {
    const bool trains = change.trial.outcome == TrialOutcome::trains;
    if (trains && (best == nullptr || change.trial.losses.back() < best->trial.losses.back())) best = &change;
  }
  if (best != nullptr)
    result.answer += fmt::format("; with {} it trains at {:.2g}", best->setting, result.configured_rate);
}

}  // namespace plumb::check
