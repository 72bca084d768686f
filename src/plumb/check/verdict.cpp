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

constexpr EnumNames<Outcome, 5> kOutcomeNames = {{{Outcome::trains, "trains"},
                                                  {Outcome::fails, "fails"},
                                                  {Outcome::slow, "slow"},
                                                  {Outcome::unmoved, "unmoved"},
                                                  {Outcome::unknown, "unknown"}}};

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

std::string to_string(Outcome outcome) { return name_of(outcome, kOutcomeNames); }

void describe(Fields& field, std::string_view key, Outcome& outcome) { named(field, key, outcome, kOutcomeNames); }

Judged judge_losses(const std::vector<int64_t>& steps, const std::vector<double>& losses, int64_t warm_up,
                    const Yardstick& yardstick, bool diverged) {
  // Weights that know more than the frequencies must not lose it.
  const bool knows = yardstick.first < yardstick.frequencies - kMargin;
  const LossCurve curve{.steps = steps,
                        .losses = losses,
                        .frequencies = knows ? yardstick.first + kMargin : yardstick.frequencies,
                        .uniform = yardstick.uniform,
                        .diverged = diverged};
  const LearningJudgment judgment = judge_learning(curve);
  const int64_t at_rate = steps.back() - warm_up;
  if (diverged) return {Outcome::fails, false, false, judgment.text};
  if (at_rate < kEnough || std::ssize(losses) < kLast + 1)
    return {Outcome::unknown, false, false, fmt::format("only {} steps", steps.back())};
  if (!knows && unmoved(losses)) {
    return {Outcome::unmoved, false, false,
            fmt::format("the loss has hardly moved in {} steps, from {:.2f} nats", steps.back(), losses.front())};
  }
  const bool stuck =
      judgment.learning == Learning::frequencies_only || judgment.learning == Learning::worse_than_uniform;
  const bool at_plateau = !knows && std::abs(losses.back() - yardstick.frequencies) < kPlateau;
  if (judgment.learning == Learning::unfinished || (stuck && falls(losses) && losses.back() < yardstick.first)) {
    return {Outcome::slow, false, at_plateau,
            fmt::format("the loss is {:.2f} nats after {} steps and still falling, against {:.2f} of the labels' "
                        "frequencies",
                        losses.back(), steps.back(), yardstick.frequencies)};
  }
  const std::string text = knows
                               ? fmt::format("the loss is {:.2f} nats after {} steps, against {:.2f} before the first",
                                             losses.back(), steps.back(), yardstick.first)
                               : judgment.text;
  if (judgment.failed()) return {Outcome::fails, false, at_plateau && stuck, text};
  const double gain = curve.frequencies - losses.back();
  const bool clear =
      !knows && at_rate >= kClear && falls(losses) && gain > std::min(kClearGain, 0.3 * curve.frequencies);
  return {Outcome::trains, clear, false, text};
}

Judged judge_fall(const std::vector<int64_t>& steps, const std::vector<double>& losses, int64_t warm_up,
                  bool diverged) {
  constexpr double kNats = 5;  // about a cross-entropy before training: the margins above are a hundredth of it
  const double first = losses.front(), size = std::max(std::abs(first), std::numeric_limits<double>::min());
  std::vector<double> scaled;
  for (const double loss : losses) scaled.push_back(kNats * (1 + (loss - first) / size));
  const Yardstick yardstick{.frequencies = kNats, .uniform = kNats, .first = kNats};
  Judged judged = judge_losses(steps, scaled, warm_up, yardstick, diverged);
  judged.on_plateau = false;
  if (judged.outcome == Outcome::unknown) return judged;
  const double last = losses.back();
  const auto lowest = std::min_element(losses.begin(), losses.end());
  if (!std::isfinite(last) || diverged) {
    judged.reason = fmt::format("not finite after {} steps", steps.back());
    return judged;
  }
  judged.reason =
      fmt::format("the loss is {:.4g} after {} steps, against {:.4g} before the first", last, steps.back(), first);
  if (judged.outcome == Outcome::unmoved) judged.reason += ": it has hardly moved";
  if (judged.outcome == Outcome::slow) judged.reason += ", and still falling";
  if (judged.outcome == Outcome::fails && *lowest < first && *lowest < last)
    judged.reason +=
        fmt::format(", after {:.4g} at step {}", *lowest, steps[static_cast<size_t>(lowest - losses.begin())]);
  return judged;
}

Judged judge_plateau(Judged judged, double gradient_at_input) {
  const bool passes = gradient_at_input >= kGradientAtInput;
  judged.outcome = passes ? Outcome::slow : Outcome::fails;
  judged.reason += fmt::format("; {}% of the last layer's gradient reaches the first{}",
                               rounded(100 * gradient_at_input, 2), passes ? ", enough to leave this plateau" : "");
  return judged;
}

}  // namespace plumb::check
