// Trials are judged as the whole runs end, on recorded losses (tests/golden/trial_losses.json).
#include "plumb/check/verdict.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "plumb/base/json.h"
#include "support/paths.h"

namespace plumb::check {
namespace {

struct Recorded {
  std::vector<int64_t> steps;
  std::vector<double> losses;  // means over the ten steps before
  double end = 0;              // mean of steps 351 to 400
};

struct Recording {
  Baselines baselines;
  std::map<std::string, Recorded> curves;
};

Recording recording() {
  const Json document = read_json(test::source_directory() / "tests/golden/trial_losses.json");
  Recording recording;
  recording.baselines.frequencies = document["frequencies"];
  recording.baselines.uniform = document["uniform"];
  for (const auto& [name, curve] : document["curves"].items()) {
    Recorded& recorded = recording.curves[name];
    const auto losses = curve["losses"].get<std::vector<double>>();  // by step
    for (int64_t step = 10; step <= std::ssize(losses); step += 10) {
      recorded.steps.push_back(step);
      recorded.losses.push_back(std::accumulate(losses.begin() + step - 10, losses.begin() + step, 0.0) / 10);
    }
    recorded.end = curve["end"];
  }
  return recording;
}

/// Of a trial of 80 steps, as `check` makes them.
TrialOutcome outcome_of(const Recorded& recorded, Baselines baselines) {
  baselines.first = recorded.losses.front();
  const auto first = [](const auto& all) { return std::vector(all.begin(), all.begin() + 8); };
  return judge_losses(first(recorded.steps), first(recorded.losses), 0, baselines, false).outcome;
}

TEST(TrialVerdict, AgreesWithHowTheWholeRunsEnd) {
  const Recording recorded = recording();
  ASSERT_GE(recorded.curves.size(), 10u);
  for (const auto& [name, curve] : recorded.curves) {
    const TrialOutcome outcome = outcome_of(curve, recorded.baselines);
    const bool learns = curve.end < recorded.baselines.frequencies - 0.3;
    if (learns) {
      EXPECT_TRUE(outcome == TrialOutcome::trains || outcome == TrialOutcome::slow)
          << name << ": " << to_string(outcome);
    } else {
      EXPECT_EQ(outcome, TrialOutcome::fails) << name;
    }
  }
}

TEST(TrialVerdict, ALowRateIsSlow) {
  const Recording recorded = recording();
  EXPECT_EQ(outcome_of(recorded.curves.at("post-ln-6-0.00025"), recorded.baselines), TrialOutcome::slow);
  EXPECT_EQ(outcome_of(recorded.curves.at("pre-ln-6-0.004"), recorded.baselines), TrialOutcome::trains);
}

/// A loss every ten steps from step 0: the first, and then others that are all the same.
Judged judged(double first, double then, int64_t steps, int64_t warm_up, const Baselines& baselines) {
  std::vector<int64_t> at;
  std::vector<double> losses;
  for (int64_t step = 0; step <= steps; step += 10) {
    at.push_back(step);
    losses.push_back(step == 0 ? first : then);
  }
  return judge_losses(at, losses, warm_up, baselines, false);
}

TEST(TrialVerdict, NothingIsSaidBeforeTheFullRateHasBeenTried) {
  const Baselines baselines{.frequencies = 5.7, .uniform = 7.6, .first = 8};
  EXPECT_EQ(judged(8, 5, 60, 50, baselines).outcome, TrialOutcome::unknown);
  EXPECT_EQ(judged(8, 5, 60, 20, baselines).outcome, TrialOutcome::trains);
}

// An 8-layer Post-LN decoder on tiny Shakespeare (AdamW, rate 0.001) after 80 steps at its rate: without a warm-up,
// 0.19% of the last layer's gradient reached the first, and the loss was still 5.88 after 500 steps; with one of 100
// steps, 1.5% did, and the loss was 5.43 to 5.55 (three seeds).
TEST(TrialVerdict, OnThePlateauTheGradientDecides) {
  const Baselines baselines{.frequencies = 5.83, .uniform = 6.9, .first = 7.3};
  const Judged stuck = judged(7.3, 5.85, 80, 0, baselines);
  EXPECT_EQ(stuck.outcome, TrialOutcome::fails);
  EXPECT_TRUE(stuck.on_plateau);
  EXPECT_EQ(judge_plateau(stuck, 0.0019).outcome, TrialOutcome::fails);
  EXPECT_EQ(judge_plateau(stuck, 0.015).outcome, TrialOutcome::slow);
  EXPECT_FALSE(judged(7.3, 6.5, 80, 0, baselines).on_plateau);
  EXPECT_FALSE(judged(7.3, 5.2, 80, 0, baselines).on_plateau);
}

TEST(TrialVerdict, AtAFarTooLowRateNothingMoves) {
  const Baselines baselines{.frequencies = 5.7, .uniform = 7.6, .first = 8};
  EXPECT_EQ(judged(8, 7.99, 80, 0, baselines).outcome, TrialOutcome::unmoved);
  EXPECT_EQ(judged(8, 5.72, 80, 0, baselines).outcome, TrialOutcome::fails);  // stuck at the frequencies
}

TEST(TrialVerdict, GivenWeightsMustKeepWhatTheyKnow) {
  const Baselines baselines{.frequencies = 5.7, .uniform = 7.6, .first = 3.0};
  EXPECT_EQ(judged(3, 2.95, 120, 0, baselines).outcome, TrialOutcome::trains);
  EXPECT_EQ(judged(3, 4.5, 120, 0, baselines).outcome, TrialOutcome::fails);  // still below the frequencies
}

TEST(TrialVerdict, ADivergedRunFails) {
  const Baselines baselines{.frequencies = 5.7, .uniform = 7.6, .first = 8};
  EXPECT_EQ(judge_losses({0, 3}, {8, 90}, 0, baselines, true).outcome, TrialOutcome::fails);
}

}  // namespace
}  // namespace plumb::check
