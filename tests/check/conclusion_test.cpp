// What a search says of the planned run, for each way in which it may end.
#include "plumb/check/conclusion.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plumb::check {
namespace {

constexpr double kPlanned = 1e-3, kReference = 6;

Trial trial(double rate, TrialOutcome outcome, double loss = 4) {
  return {.learning_rate = rate, .outcome = outcome, .steps = {0, 80}, .losses = {kReference + 1, loss}};
}

const RateBelief kAbove(1e-2, 0.3), kBelow(1e-4, 0.3), kAround(kPlanned, 1), kFarAbove(1, 0.3);
const Trial kTrains = trial(kPlanned, TrialOutcome::trains), kTrainsLower = trial(1e-4, TrialOutcome::trains),
            kFails = trial(kPlanned, TrialOutcome::fails), kFailsLower = trial(1e-4, TrialOutcome::fails),
            kFailsFarBelow = trial(1e-5, TrialOutcome::fails),
            kUnmoved = trial(kPlanned, TrialOutcome::unmoved, kReference + 1),
            kTrainsAbove = trial(0.1, TrialOutcome::trains),
            kOnPlateau = trial(kPlanned, TrialOutcome::slow, kReference + 0.1);

struct Search {
  Ending ending;
  CheckAnswer answer;
  bool recommends;
  RateBelief belief;
  std::vector<Trial> trials;
  PlannedSchedule schedule{.peak = kPlanned, .steps = 5000};
  int64_t tried_warm_up = 0;
  std::optional<int64_t> warm_up_that_helps{};
};

TEST(Conclusion, OfEachEnding) {
  const PlannedSchedule brief{.peak = kPlanned, .steps = 20}, short_run{.peak = kPlanned, .steps = 150},
      warmed{.peak = kPlanned, .warm_up = 1000, .steps = 5000};
  const std::vector<Search> searches = {
      {Ending::run_too_short, CheckAnswer::unknown, false, kAround, {}, brief},
      {Ending::budget_too_small, CheckAnswer::unknown, false, kAround, {}},
      {Ending::nothing_trains, CheckAnswer::cannot, false, kBelow, {kFails, kFailsFarBelow}},
      {Ending::nothing_trains_so_far, CheckAnswer::other_rate, true, kBelow, {kFails, kFailsLower}},
      {Ending::nothing_trains_yet, CheckAnswer::unknown, false, kAround, {kFails, kFailsLower}},
      {Ending::nothing_trains_yet, CheckAnswer::unknown, false, kBelow, {kFails, kFailsLower}, warmed},
      {Ending::moves_too_little, CheckAnswer::other_rate, true, kFarAbove, {kUnmoved, kTrainsAbove}, short_run},
      {Ending::not_below_frequencies, CheckAnswer::unknown, false, kAbove, {kOnPlateau}},
      {Ending::trains, CheckAnswer::trains, true, kAbove, {kTrains}},
      {Ending::needs_warm_up,
       CheckAnswer::needs_warm_up,
       true,
       kBelow,
       {kFails, kTrainsLower},
       {kPlanned, 1, 0, 5000},
       0,
       100},
      {Ending::fails, CheckAnswer::other_rate, true, kBelow, {kFails, kTrainsLower}},
      {Ending::longer_warm_up_may_do, CheckAnswer::unknown, true, kBelow, {kFails, kTrainsLower}, warmed, 100},
      {Ending::trains, CheckAnswer::trains, true, kFarAbove, {kTrains}, short_run},
      {Ending::near_the_edge, CheckAnswer::unknown, true, kBelow, {kTrains}},
      {Ending::near_the_edge, CheckAnswer::unknown, true, kAround, {kTrains}}};
  for (const Search& each : searches) {
    const SearchPlan plan{.schedule = each.schedule, .configured_rate = kPlanned, .reference = kReference};
    std::vector<Trial> trials = each.trials;
    for (Trial& one : trials) one.warm_up = each.tried_warm_up;
    const SearchState known{.trials = trials,
                            .belief = each.belief,
                            .without_warm_up = each.belief,
                            .informative = std::ssize(trials),
                            .tried_warm_up = each.tried_warm_up,
                            .warm_up_that_helps = each.warm_up_that_helps};
    const Conclusion found = conclude(plan, known);
    SCOPED_TRACE(found.answer);
    EXPECT_EQ(ending_of(plan, known), each.ending);
    EXPECT_EQ(found.verdict, each.answer);
    EXPECT_EQ(found.recommended.has_value(), each.recommends);
    const bool known_loss = found.recommended && found.recommended->tried && each.ending != Ending::needs_warm_up;
    EXPECT_EQ(known_loss && found.recommended->loss_above_best.has_value(),
              known_loss && each.answer != CheckAnswer::unknown);
  }
}

TEST(Conclusion, WhatToDoComesFirst) {
  const SearchPlan plan{
      .schedule = {.peak = kPlanned, .steps = 5000}, .configured_rate = kPlanned, .reference = kReference};
  const auto answer = [&](const RateBelief& belief, const std::vector<Trial>& trials) {
    return conclude(plan,
                    {.trials = trials, .belief = belief, .without_warm_up = belief, .informative = std::ssize(trials)});
  };
  // 0.0203·√0.25 is 3.3 octaves above, each of them worth 0.17 nats.
  const Conclusion higher = answer(RateBelief(0.25, 0.3), {kTrains, kTrainsAbove});
  EXPECT_EQ(higher.answer, "use 0.01 instead of 0.001, which trains: about 0.57 nats lower");
  ASSERT_TRUE(higher.recommended->gain);
  EXPECT_LT(higher.recommended->gain->low, higher.recommended->gain->nats);
  EXPECT_EQ(answer(RateBelief(2.5e-3, 0.3), {kTrains}).answer, "trains as configured: keep 0.001");
  ASSERT_TRUE(higher.recommended->gain_of_warm_up);
  EXPECT_LT(higher.recommended->gain_of_warm_up->low, higher.recommended->gain_of_warm_up->high);
  EXPECT_FALSE(answer(kBelow, {kFails, kTrainsLower}).recommended->gain_of_warm_up) << "what fails is another question";
  EXPECT_EQ(answer(kBelow, {kFails, kTrainsLower}).answer, "use 7.1e-05 instead of 0.001, which does not train");
  // Not far above a lower rate that does better at the same step, of two that train.
  const Trial ahead = trial(kPlanned, TrialOutcome::trains, 3.8), behind = trial(0.1, TrialOutcome::slow, 4);
  EXPECT_NEAR(answer(RateBelief(0.25, 0.3), {ahead, behind}).recommended->learning_rate, std::exp2(1.5) * kPlanned,
              1e-9);
  const Trial level = trial(kPlanned, TrialOutcome::trains, 3.95);
  EXPECT_NEAR(answer(RateBelief(0.25, 0.3), {level, behind}).recommended->learning_rate, 0.0101, 1e-4);
  // No trial carries a rate: one is on the plateau, as the failing one was.
  Trial stuck = kTrainsLower;
  stuck.outcome = TrialOutcome::slow;
  stuck.on_plateau = true;
  const Conclusion untried = answer(kBelow, {kFails, stuck});
  ASSERT_TRUE(untried.recommended);
  EXPECT_FALSE(untried.recommended->tried);
  EXPECT_FALSE(untried.recommended->loss_above_best);
  EXPECT_EQ(untried.answer, "does not train at 0.001; try 7.1e-05, an estimate that no trial confirms");
  const Trial unmoved = trial(1e-4, TrialOutcome::unmoved, kReference + 1);
  EXPECT_FALSE(answer(kBelow, {kFails, stuck, unmoved}).recommended) << "too low a rate";
  // Nor does a control far below, which has learned less.
  const Trial control = trial(1e-5, TrialOutcome::slow, kReference + 0.5);
  EXPECT_FALSE(answer(kAround, {kFails, stuck, control}).recommended);
}

TEST(Conclusion, OfARunThatGoesOnRecommendsNothing) {
  const SearchPlan plan{.schedule = {.peak = kPlanned, .steps = 5000}, .resumes = true, .reference = kReference};
  const std::vector<Trial> trials = {kFails, kTrainsLower};
  const Conclusion found =
      conclude(plan, {.trials = trials, .belief = kBelow, .without_warm_up = kBelow, .informative = 2});
  EXPECT_EQ(found.verdict, CheckAnswer::other_rate);
  EXPECT_FALSE(found.recommended);
}

}  // namespace
}  // namespace plumb::check
