// Trials are judged as the whole runs end, on recorded losses (tests/golden/trial_losses.json).
#include "plumb/check/verdict.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "plumb/base/json.h"
#include "support/paths.h"

namespace plumb::check {
namespace {

struct Recorded {
  std::vector<double> losses;  // of the first 120 steps
  double end = 0;              // mean of steps 351 to 400
};

struct Recording {
  Yardstick yardstick;
  std::map<std::string, Recorded> curves;
};

Recording recording() {
  const Json document = read_json(test::source_directory() / "tests/golden/trial_losses.json");
  Recording recording;
  recording.yardstick.frequencies = document["frequencies"];
  recording.yardstick.uniform = document["uniform"];
  for (const auto& [name, curve] : document["curves"].items())
    recording.curves[name] = {curve["losses"].get<std::vector<double>>(), curve["end"]};
  return recording;
}

/// The outcome of a trial that ends once it is settled, or after 120 steps; and its length.
std::pair<Outcome, int64_t> outcome_of(const Recorded& recorded, Yardstick yardstick) {
  yardstick.first = recorded.losses.front();
  for (int64_t steps = 1; steps <= std::ssize(recorded.losses); ++steps) {
    const Judged judged = judge_losses({recorded.losses.begin(), recorded.losses.begin() + steps}, 0, yardstick, false);
    if (judged.settled || steps == std::ssize(recorded.losses)) return {judged.outcome, steps};
  }
  return {};
}

TEST(TrialVerdict, AgreesWithHowTheWholeRunsEnd) {
  const Recording recorded = recording();
  ASSERT_GE(recorded.curves.size(), 10u);
  for (const auto& [name, curve] : recorded.curves) {
    const auto [outcome, steps] = outcome_of(curve, recorded.yardstick);
    const bool learns = curve.end < recorded.yardstick.frequencies - 0.3;
    if (learns) {
      EXPECT_TRUE(outcome == Outcome::trains || outcome == Outcome::slow) << name << ": " << to_string(outcome);
    } else {
      EXPECT_EQ(outcome, Outcome::fails) << name << " after " << steps;
    }
  }
}

TEST(TrialVerdict, ALowRateIsSlowAndAGoodOneIsSettledEarly) {
  const Recording recorded = recording();
  EXPECT_EQ(outcome_of(recorded.curves.at("post-ln-6-0.00025"), recorded.yardstick).first, Outcome::slow);
  const auto [outcome, steps] = outcome_of(recorded.curves.at("pre-ln-6-0.004"), recorded.yardstick);
  EXPECT_EQ(outcome, Outcome::trains);
  EXPECT_LT(steps, 60);
}

TEST(TrialVerdict, NothingIsSaidBeforeTheFullRateHasBeenTried) {
  const std::vector<double> losses(60, 5.0);
  const Yardstick yardstick{.frequencies = 5.7, .uniform = 7.6, .first = 8};
  EXPECT_EQ(judge_losses(losses, 50, yardstick, false).outcome, Outcome::unknown);
  EXPECT_EQ(judge_losses(losses, 20, yardstick, false).outcome, Outcome::trains);
}

TEST(TrialVerdict, GivenWeightsMustKeepWhatTheyKnow) {
  const Yardstick yardstick{.frequencies = 5.7, .uniform = 7.6, .first = 3.0};
  std::vector<double> kept(120, 2.95), lost(120, 3.0);
  for (size_t i = 20; i < lost.size(); ++i) lost[i] = 4.5;  // still below the frequencies
  EXPECT_EQ(judge_losses(kept, 0, yardstick, false).outcome, Outcome::trains);
  EXPECT_EQ(judge_losses(lost, 0, yardstick, false).outcome, Outcome::fails);
}

TEST(TrialVerdict, ADivergedRunFails) {
  const Judged judged = judge_losses({8, 9}, 0, {.frequencies = 5.7, .uniform = 7.6, .first = 8}, true);
  EXPECT_EQ(judged.outcome, Outcome::fails);
  EXPECT_TRUE(judged.settled);
}

}  // namespace
}  // namespace plumb::check
