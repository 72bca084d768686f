#include "plumb/check/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "plumb/base/quantity.h"
#include "plumb/trouble/failure.h"
#include "plumb/trouble/record_fields.h"

namespace plumb::check {
namespace {

constexpr EnumNames<TrialOutcome, 5> kOutcomeNames = {{{TrialOutcome::trains, "trains"},
                                                       {TrialOutcome::fails, "fails"},
                                                       {TrialOutcome::slow, "slow"},
                                                       {TrialOutcome::unmoved, "unmoved"},
                                                       {TrialOutcome::unknown, "unknown"}}};

constexpr int64_t kEnough = 20;     // steps, at the full rate, that show anything
constexpr int64_t kClear = 40;      // steps at the full rate after which a trial may end because it trains clearly
constexpr double kClearGain = 0.3;  // nats below the frequencies that are clear
constexpr double kPlateau = 0.2;    // nats around the frequencies
constexpr double kMargin = 0.1;     // nats below the frequencies of weights that know more
constexpr int64_t kLast = 3;        // the losses that must each be lower than the one before
constexpr double kFall = 0.03;      // nats that they fall in all, and less than which is no movement

/// Whether the last losses fall steadily, if slowly: a run at too low a rate, not one that is stuck.
bool falls(const std::vector<double>& losses) {
  if (std::ssize(losses) <= kLast) return false;
  const auto last = losses.end() - kLast - 1;
  return std::is_sorted(last, losses.end(), std::greater_equal<>()) && *last - losses.back() >= kFall;
}

/// Whether no loss differs from the first. Weights that know nothing then have learned nothing yet.
bool unmoved(const std::vector<double>& losses) {
  return std::all_of(losses.begin(), losses.end(),
                     [&](double loss) { return std::abs(loss - losses.front()) < kFall; });
}

}  // namespace

std::string to_string(TrialOutcome outcome) { return name_of(outcome, kOutcomeNames); }

void describe(Fields& field, std::string_view key, TrialOutcome& outcome) { named(field, key, outcome, kOutcomeNames); }

Judged judge_losses(const std::vector<int64_t>& steps, const std::vector<double>& losses, int64_t warm_up,
                    const Baselines& baselines, bool diverged) {
  // Weights that know more than the frequencies must not lose it.
  const bool knows = baselines.first < baselines.frequencies - kMargin;
  const LossCurve curve{.steps = steps,
                        .losses = losses,
                        .frequencies = knows ? baselines.first + kMargin : baselines.frequencies,
                        .uniform = baselines.uniform,
                        .diverged = diverged};
  const LearningJudgment judgment = judge_learning(curve);
  const int64_t at_rate = steps.back() - warm_up;
  if (diverged) return {TrialOutcome::fails, false, false, judgment.text};
  if (at_rate < kEnough || std::ssize(losses) < kLast + 1)
    return {TrialOutcome::unknown, false, false, fmt::format("only {} steps", steps.back())};
  if (!knows && unmoved(losses)) {
    return {TrialOutcome::unmoved, false, false,
            fmt::format("the loss has hardly moved in {} steps, from {:.2f} nats", steps.back(), losses.front())};
  }
  const bool stuck =
      judgment.learning == Learning::frequencies_only || judgment.learning == Learning::worse_than_uniform;
  const bool at_plateau = !knows && std::abs(losses.back() - baselines.frequencies) < kPlateau;
  if (judgment.learning == Learning::unfinished || (stuck && falls(losses) && losses.back() < baselines.first)) {
    return {TrialOutcome::slow, false, at_plateau,
            fmt::format("the loss is {:.2f} nats after {} steps and still falling, against {:.2f} of the labels' "
                        "frequencies",
                        losses.back(), steps.back(), baselines.frequencies)};
  }
  const std::string text = knows
                               ? fmt::format("the loss is {:.2f} nats after {} steps, against {:.2f} before the first",
                                             losses.back(), steps.back(), baselines.first)
                               : judgment.text;
  if (judgment.failed()) return {TrialOutcome::fails, false, at_plateau && stuck, text};
  const double gain = curve.frequencies - losses.back();
  const bool clear =
      !knows && at_rate >= kClear && falls(losses) && gain > std::min(kClearGain, 0.3 * curve.frequencies);
  return {TrialOutcome::trains, clear, false, text};
}

Judged judge_fall(const std::vector<int64_t>& steps, const std::vector<double>& losses, int64_t warm_up,
                  bool diverged) {
  constexpr double kNats = 5;  // about a cross-entropy before training: the margins above are a hundredth of it
  const double first = losses.front(), size = std::max(std::abs(first), std::numeric_limits<double>::min());
  std::vector<double> scaled;
  for (const double loss : losses) scaled.push_back(kNats * (1 + (loss - first) / size));
  const Baselines baselines{.frequencies = kNats, .uniform = kNats, .first = kNats};
  Judged judged = judge_losses(steps, scaled, warm_up, baselines, diverged);
  judged.on_plateau = false;
  if (judged.outcome == TrialOutcome::unknown) return judged;
  const double last = losses.back();
  const auto lowest = std::min_element(losses.begin(), losses.end());
  if (!std::isfinite(last) || diverged) {
    judged.because = fmt::format("not finite after {} steps", steps.back());
    return judged;
  }
  judged.because =
      fmt::format("the loss is {:.4g} after {} steps, against {:.4g} before the first", last, steps.back(), first);
  if (judged.outcome == TrialOutcome::unmoved) judged.because += ": it has hardly moved";
  if (judged.outcome == TrialOutcome::slow) judged.because += ", and still falling";
  if (judged.outcome == TrialOutcome::fails && *lowest < first && *lowest < last)
    judged.because +=
        fmt::format(", after {:.4g} at step {}", *lowest, steps[static_cast<size_t>(lowest - losses.begin())]);
  return judged;
}

Judged judge_plateau(Judged judged, double gradient_at_input) {
  const bool passes = gradient_at_input >= kGradientAtInput;
  judged.outcome = passes ? TrialOutcome::slow : TrialOutcome::fails;
  judged.because += fmt::format("; {}% of the last layer's gradient reaches the first{}",
                                rounded(100 * gradient_at_input, 2), passes ? ", enough to leave this plateau" : "");
  return judged;
}

}  // namespace plumb::check
