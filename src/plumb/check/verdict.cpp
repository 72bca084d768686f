#include "plumb/check/verdict.h"

#include <fmt/format.h>

#include <numeric>

#include "plumb/trouble/failure.h"
#include "plumb/trouble/record_fields.h"

namespace plumb::check {
namespace {

constexpr EnumNames<Outcome, 4> kNames = {
    {{Outcome::trains, "trains"}, {Outcome::fails, "fails"}, {Outcome::slow, "slow"}, {Outcome::unknown, "unknown"}}};

constexpr int64_t kWindow = 10;     // steps of a point: batches of short texts differ from those of long ones
constexpr int64_t kEnough = 20;     // steps, at the full rate, that show anything
constexpr double kMargin = 0.1;     // nats below the frequencies at which a trial need not go on
constexpr int64_t kPatience = 100;  // steps at the full rate after which a trial that has not learned has failed

}  // namespace

std::string to_string(Outcome outcome) { return name_of(outcome, kNames); }

void describe(Fields& field, std::string_view key, Outcome& outcome) { named(field, key, outcome, kNames); }

Judged judge_losses(const std::vector<double>& losses, int64_t warm_up, const Yardstick& yardstick, bool diverged) {
  const auto steps = static_cast<int64_t>(losses.size());
  // Weights that know more than the frequencies must not lose it.
  const bool knows = yardstick.first < yardstick.frequencies - kMargin;
  LossCurve curve{.frequencies = knows ? yardstick.first + kMargin : yardstick.frequencies,
                  .uniform = yardstick.uniform,
                  .diverged = diverged};
  for (int64_t end = kWindow; end <= steps; end += kWindow) {
    curve.steps.push_back(end);
    curve.losses.push_back(std::accumulate(losses.begin() + end - kWindow, losses.begin() + end, 0.0) / kWindow);
  }
  const LearningJudgment judgment = judge_learning(curve);
  const int64_t at_rate = steps - warm_up;
  if (diverged) return {Outcome::fails, true, judgment.text};
  if (at_rate < kEnough) return {Outcome::unknown, false, fmt::format("only {} steps", steps)};
  if (judgment.failed()) return {Outcome::fails, at_rate >= kPatience, judgment.text};
  if (judgment.learning == Learning::unfinished) return {Outcome::slow, false, judgment.text};
  return {Outcome::trains, !knows && judgment.final < curve.frequencies - kMargin, judgment.text};
}

}  // namespace plumb::check
