// The search on simulated trials: runs that train exactly below a known rate.
#include "plumb/check/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "plumb/analysis/rate_search.h"
#include "plumb/check/compared_trials.h"

namespace plumb::check {
namespace {

constexpr double kFirstLoss = 6;

struct Simulated {
  double stable = 0;               // rates above fail
  double stable_with_warm_up = 0;  // after a warm-up
  double moving = 0;               // rates below change nothing
  SearchPlan plan{
      .schedule = {.peak = 1e-3, .warm_up = 0, .steps = 5000}, .configured_rate = 1e-3, .reference = kFirstLoss};

  [[nodiscard]] CheckResult search(double believed = 1e-3) {
    CheckResult result;
    const SearchHooks hooks{.attempt = [this](const TrialPlan& trial, int64_t steps) {
      const double limit = trial.warm_up > 0 ? stable_with_warm_up : stable;
      Trial found{.learning_rate = trial.learning_rate, .warm_up = trial.warm_up, .seed = trial.seed};
      found.outcome = trial.learning_rate > limit    ? TrialOutcome::fails
                      : trial.learning_rate < moving ? TrialOutcome::unmoved
                                                     : TrialOutcome::trains;
      found.steps = {0, steps};
      found.losses = {kFirstLoss, found.outcome == TrialOutcome::fails    ? 7.0
                                  : found.outcome == TrialOutcome::trains ? 4.0
                                                                          : kFirstLoss};
      found.steps_taken = steps;
      found.seconds = 0.5 * static_cast<double>(steps);
      return found;
    }};
    search_rates(plan, RateBelief(believed, 3), hooks, result);
    return result;
  }
};

TEST(RateSearch, FindsTheRateAboveWhichTrialsFail) {
  for (const double stable : {2e-4, 1.3e-3, 9e-3}) {
    Simulated runs{.stable = stable};
    runs.plan.budget.gradients = 2000;
    const CheckResult result = runs.search();
    ASSERT_TRUE(result.largest_stable_rate);
    EXPECT_LT(result.largest_stable_rate->low, stable);
    EXPECT_GT(result.largest_stable_rate->high, stable);
    EXPECT_NEAR(std::log2(result.largest_stable_rate->estimate / stable), 0, 0.7);
    EXPECT_LE(result.cost.gradients, 2000);
    EXPECT_EQ(result.planned_seconds, 2500);
  }
}

TEST(RateSearch, ComesToEachVerdict) {
  Simulated runs{.stable = 3e-3};
  runs.plan.budget.gradients = 600;
  const CheckResult trains = runs.search();
  EXPECT_EQ(trains.verdict, CheckAnswer::trains);
  EXPECT_EQ(trains.recommended->learning_rate,
            rate_to_recommend(trains.largest_stable_rate->estimate, 1e-3, runs.plan.step_length));
  EXPECT_GT(trains.recommended->most_loss_above_best, trains.recommended->loss_above_best);

  runs.stable = runs.stable_with_warm_up = 5e-5;
  const CheckResult other = runs.search();
  EXPECT_EQ(other.verdict, CheckAnswer::other_rate) << other.answer;
  EXPECT_LT(other.recommended->learning_rate, 1e-4);

  runs.stable = 4e-4;
  runs.stable_with_warm_up = 1;
  runs.plan.budget.gradients = 4000;  // for warm-ups of 100 and of 50 steps
  const CheckResult warm = runs.search();
  EXPECT_EQ(warm.verdict, CheckAnswer::needs_warm_up) << warm.answer;
  EXPECT_EQ(warm.recommended->warm_up, 100);

  runs.stable = runs.stable_with_warm_up = 0;
  runs.plan.budget.gradients = 8000;
  EXPECT_EQ(runs.search().verdict, CheckAnswer::cannot);
  EXPECT_FALSE(runs.search().recommended);

  runs.plan.budget.gradients = 50;
  const CheckResult little = runs.search();
  EXPECT_EQ(little.verdict, CheckAnswer::unknown);
  EXPECT_EQ(little.answer, "cannot tell within this budget: give at least 80 gradients");
  EXPECT_TRUE(little.trials.empty());
}

TEST(RateSearch, ARateAtWhichAllStepsChangeNothingIsNotApproved) {
  Simulated runs{.stable = 1e-2, .stable_with_warm_up = 1e-2, .moving = 1e-6};
  runs.plan.schedule = {.peak = 2e-9, .warm_up = 60, .steps = 300};
  runs.plan.budget.gradients = 800;
  const CheckResult slow = runs.search();
  EXPECT_EQ(slow.verdict, CheckAnswer::other_rate) << slow.answer;
  EXPECT_NEAR(std::log2(slow.recommended->learning_rate / 2.5e-3), 0, 1);
  runs.plan.schedule.peak = 2e-3;
  EXPECT_EQ(runs.search().verdict, CheckAnswer::trains);
  // Unless its trial has learned: the rate of some optimizers is not the size of a step.
  runs.moving = 0;
  runs.plan.schedule.peak = 2e-9;
  const CheckResult learns = runs.search();
  EXPECT_EQ(learns.verdict, CheckAnswer::trains) << learns.answer;
}

TEST(RateSearch, ATrialIsRepeatedBeforeItIsContradicted) {
  Simulated runs{.stable = 1e9};
  runs.plan.schedule.peak = 30;
  runs.plan.budget.gradients = 250;
  const CheckResult repeated = runs.search(0.05);  // a belief far below
  ASSERT_GE(repeated.trials.size(), 2U);
  for (const size_t i : {0U, 1U}) EXPECT_EQ(repeated.trials[i].learning_rate, 30);
  EXPECT_NE(repeated.verdict, CheckAnswer::other_rate) << repeated.answer;
  runs.plan.budget.gradients = 100;
  const CheckResult once = runs.search(0.05);
  EXPECT_EQ(once.verdict, CheckAnswer::unknown) << once.answer;
  EXPECT_TRUE(once.answer.ends_with(", at which a trial was stable")) << once.answer;
}

TEST(RateSearch, WhatIsOnThePlateauBelowARateThatHasLeftItIsSlow) {
  std::vector<Trial> trials = {{.learning_rate = 2e-3, .outcome = TrialOutcome::fails, .on_plateau = true},
                               {.learning_rate = 1e-3, .outcome = TrialOutcome::fails},
                               {.learning_rate = 9e-3, .outcome = TrialOutcome::fails, .on_plateau = true}};
  excuse_slower_trials(trials);
  EXPECT_EQ(trials[0].outcome, TrialOutcome::fails);
  trials.push_back({.learning_rate = 7e-3, .outcome = TrialOutcome::trains});
  excuse_slower_trials(trials);
  EXPECT_EQ(trials[0].outcome, TrialOutcome::slow);
  EXPECT_TRUE(trials[0].because.ends_with("0.007 has left this plateau")) << trials[0].because;
  EXPECT_EQ(trials[1].outcome, TrialOutcome::fails) << "not on the plateau";
  EXPECT_EQ(trials[2].outcome, TrialOutcome::fails) << "at a higher rate";
}

TEST(RateSearch, TrainedWeightsKeepTheirPlannedRate) {
  Simulated runs{.stable = 1};
  runs.plan.judges_relative_gain = false;
  runs.plan.budget.gradients = 800;
  const CheckResult result = runs.search();
  EXPECT_EQ(result.verdict, CheckAnswer::trains) << result.answer;
  EXPECT_EQ(result.recommended->learning_rate, 1e-3);
}

// The schedule of the original Transformer multiplies train.learning_rate by d^−½, and trials are at its peak.
TEST(RateSearch, RecommendsInTheUnitOfTheConfiguration) {
  const double peak = 0.3 / std::sqrt(500.0), factor = peak / 0.3;
  Simulated runs{.stable = 32 * peak};
  runs.plan.schedule = {.peak = peak, .factor = factor, .warm_up = 0, .steps = 5000};
  runs.plan.configured_rate = 0.3;
  runs.plan.budget.gradients = 800;
  const CheckResult kept = runs.search(runs.stable);
  ASSERT_EQ(kept.verdict, CheckAnswer::trains) << kept.answer;
  ASSERT_EQ(rate_to_recommend(kept.largest_stable_rate->estimate, peak, StepLength::sign), peak);
  EXPECT_EQ(kept.recommended->learning_rate, 0.3);
  EXPECT_TRUE(recommends_as_configured(kept));
  runs.stable = 0.01 * factor;
  const CheckResult other = runs.search();
  EXPECT_LT(other.recommended->learning_rate, 0.01);
  EXPECT_GT(other.recommended->learning_rate, 0.01 * factor);
  EXPECT_FALSE(recommends_as_configured(other));
}

TEST(RateSearch, AWarmUpThatTakesMostOfTheRunIsShortened) {
  Simulated runs{.stable = 1e-2, .stable_with_warm_up = 1e-2};
  runs.plan.schedule = {.peak = 2e-3, .warm_up = 300, .steps = 300};
  runs.plan.budget.gradients = 800;
  const CheckResult result = runs.search();
  EXPECT_EQ(result.recommended->warm_up, 30);
  EXPECT_TRUE(result.answer.ends_with("its warm-up takes 300 of 300 steps, where 30 are usual")) << result.answer;
}

TEST(RateSearch, TrialsOnThePlateauAreComparedWithOneAtALowerRate) {
  SearchPlan plan{.schedule = {.peak = 0.2, .warm_up = 0, .steps = 300}, .reference = 5.93};
  const SearchHooks hooks{.attempt = [](const TrialPlan& trial, int64_t steps) {
    const bool stuck = trial.learning_rate > 0.05;
    return Trial{.learning_rate = trial.learning_rate,
                 .outcome = stuck ? TrialOutcome::slow : TrialOutcome::trains,
                 .steps = {0, steps},
                 .losses = {7, stuck ? 6.06 : 5},
                 .steps_taken = steps};
  }};
  const auto search = [&](int64_t gradients) {
    plan.budget.gradients = gradients;
    CheckResult result;
    search_rates(plan, RateBelief(1, 3), hooks, result);
    return result;
  };
  const CheckResult found = search(400);
  EXPECT_EQ(found.verdict, CheckAnswer::other_rate) << found.answer;
  EXPECT_LT(found.largest_stable_rate->estimate, 0.2);
  EXPECT_NE(search(100).verdict, CheckAnswer::trains);
}

TEST(RateSearch, GoesOnWhileThePlannedRateLiesInANarrowInterval) {
  for (const double stable : {0.75e-3, 1.4e-3}) {
    Simulated runs{.stable = stable};
    runs.plan.budget.gradients = 2000;
    const CheckResult result = runs.search();
    EXPECT_EQ(result.verdict, stable < 1e-3 ? CheckAnswer::other_rate : CheckAnswer::trains) << result.answer;
  }
  Simulated edge{.stable = 1e-3};
  edge.plan.budget.gradients = 100000;
  EXPECT_LT(edge.search().cost.gradients, 50000);  // nor for ever
}

TEST(RateSearch, TrialsWithoutAPlannedWarmUpLeaveTheOthersHalf) {
  Simulated runs{.stable = 1e-5, .stable_with_warm_up = 1};
  runs.plan.schedule.warm_up = 20;
  runs.plan.budget.gradients = 450;  // a trial without and half of one; two with
  const CheckResult result = runs.search();
  int64_t without = 0;
  for (const Trial& trial : result.trials) without += trial.warm_up == 0 ? trial.steps_taken : 0;
  EXPECT_LE(without, 225);
  EXPECT_EQ(result.verdict, CheckAnswer::trains) << result.answer;
}

/// Trials that all train, to a loss of 4, but with larger rates than this only to `plateau`.
SearchHooks stuck_above(double largest, double plateau) {
  return {.attempt = [=](const TrialPlan& trial, int64_t steps) {
    return Trial{.learning_rate = trial.learning_rate,
                 .warm_up = trial.warm_up,
                 .outcome = TrialOutcome::trains,
                 .steps = {0, steps},
                 .losses = {kFirstLoss, trial.learning_rate > largest ? plateau : 4.0},
                 .steps_taken = steps};
  }};
}

TEST(RateSearch, MoreBudgetMakesTrialsLonger) {
  Simulated runs{.stable = 3e-3};
  for (const auto& [gradients, steps] :
       {std::pair<int64_t, int64_t>{250, 83}, {450, 150}, {600, 160}, {1000, 250}, {4000, 300}}) {
    runs.plan.budget.gradients = gradients;
    const CheckResult result = runs.search();
    EXPECT_EQ(result.trials.front().steps_taken, steps) << gradients;
    for (const Trial& trial : result.trials) EXPECT_GE(trial.steps_taken, 3 * steps / 4) << gradients;
  }
  runs.plan.schedule.steps = 500;
  EXPECT_EQ(runs.search().trials.front().steps_taken, 125);  // a quarter of the run
}

TEST(RateSearch, SaysBeforeTheFirstTrialHowLongAllTake) {
  SearchPlan plan{.schedule = {.peak = 1e-4, .warm_up = 0, .steps = 5000}, .reference = kFirstLoss};
  plan.budget.gradients = 250;
  plan.seconds_per_gradient = 2;
  std::vector<std::string> said;
  SearchHooks hooks = stuck_above(1, 4);
  hooks.progress = [&](const std::string& what, double) { said.push_back(what); };
  CheckResult result;
  search_rates(plan, RateBelief(1e-4, 3), hooks, result);
  ASSERT_GE(said.size(), 2U);
  EXPECT_EQ(said[0], "trial at 0.0001; all trials take about 8:20 min");
  EXPECT_EQ(said[1].find(';'), std::string::npos) << said[1];
}

TEST(RateSearch, TrialsHaveThePlannedWarmUpOnlyWhereItDecides) {
  Simulated runs{.stable = 1e-2, .stable_with_warm_up = 1.6e-2};
  runs.plan.schedule.warm_up = 200;
  runs.plan.budget.gradients = 250;
  const CheckResult trains = runs.search();
  EXPECT_EQ(trains.verdict, CheckAnswer::trains) << trains.answer;
  ASSERT_EQ(trains.trials.size(), 3U);
  for (const Trial& trial : trains.trials) EXPECT_EQ(trial.warm_up, 0);
  EXPECT_EQ(trains.tried_warm_up, 0);
  EXPECT_NEAR(trains.largest_stable_rate->estimate / trains.largest_stable_rate_without_warm_up->estimate,
              std::exp2(warm_up_lift({})), 0.05);
  EXPECT_GT(trains.largest_stable_rate->octaves(), trains.largest_stable_rate_without_warm_up->octaves());

  runs.stable = 3e-4;
  runs.plan.budget.gradients = 700;
  const CheckResult saved = runs.search();
  EXPECT_EQ(saved.verdict, CheckAnswer::trains) << saved.answer;
  EXPECT_TRUE(std::any_of(saved.trials.begin(), saved.trials.end(),
                          [](const Trial& trial) { return trial.warm_up > 0 && trial.learning_rate == 1e-3; }));
}

TEST(RateSearch, ARateNearTheEdgeIsAlsoTriedWithItsWarmUp) {
  Simulated runs{.stable = 1.2e-3, .stable_with_warm_up = 1e-2};
  runs.plan.schedule.warm_up = 200;
  runs.plan.budget.gradients = 1500;
  const CheckResult result = runs.search();
  EXPECT_TRUE(std::any_of(result.trials.begin(), result.trials.end(),
                          [](const Trial& trial) { return trial.warm_up > 0 && trial.learning_rate == 1e-3; }));
  EXPECT_EQ(result.verdict, CheckAnswer::trains) << result.answer;
}

TEST(RateSearch, TrialsWithLessThanHalfOfTheBestGainAreNotStable) {
  SearchPlan plan{.schedule = {.peak = 1e-4, .warm_up = 0, .steps = 5000}, .reference = kFirstLoss};
  plan.budget.gradients = 1000;
  const SearchHooks hooks = stuck_above(2e-4, 5.7);  // ends below the reference all the same
  const auto estimate = [&] {
    CheckResult result;
    search_rates(plan, RateBelief(1e-4, 3), hooks, result);
    return result.largest_stable_rate->estimate;
  };
  EXPECT_LT(estimate(), 4e-4);
  plan.judges_relative_gain = false;
  EXPECT_GT(estimate(), 1e-3);
}

TEST(RateSearch, TriesAControlWhereEveryTrialHasGainedLittle) {
  SearchPlan plan{.schedule = {.peak = 1, .warm_up = 0, .steps = 5000}, .reference = kFirstLoss};
  plan.budget.gradients = 800;
  const SearchHooks hooks = stuck_above(0.01, 5.8);  // on a plateau a little below the first loss
  const auto search = [&] {
    CheckResult result;
    search_rates(plan, RateBelief(1, 3), hooks, result);
    return result;
  };
  EXPECT_EQ(search().verdict, CheckAnswer::trains);
  plan.gain_without_control = 0.4;
  const CheckResult found = search();
  EXPECT_EQ(found.verdict, CheckAnswer::other_rate) << found.answer;
  EXPECT_LT(found.largest_stable_rate->estimate, 0.03);
}

/// A quadratic loss of curvature 1 under gradient descent: w ← (1 − η)·w.
std::vector<double> descent(double rate, double scale, double offset) {
  std::vector<double> losses;
  for (int64_t step = 0; step <= 80; step += 10)
    losses.push_back(offset + scale * std::pow(1 - rate, 2 * static_cast<double>(step)));
  return losses;
}

TEST(FallVerdict, HasNoUnit) {
  const std::vector<int64_t> steps = {0, 10, 20, 30, 40, 50, 60, 70, 80};
  for (const double scale : {1e-6, 1.0, 1e6}) {
    for (const double offset : {0.0, -1.5 * scale}) {  // such as a likelihood, of either sign
      const auto outcome = [&](double rate) {
        return judge_fall(steps, descent(rate, scale, offset), 0, false).outcome;
      };
      EXPECT_EQ(outcome(1.9), TrialOutcome::trains);
      EXPECT_EQ(outcome(2.01), TrialOutcome::fails);
      EXPECT_EQ(outcome(1e-6), TrialOutcome::unmoved);
    }
  }
  EXPECT_EQ(judge_fall({0, 3}, {1, INFINITY}, 0, true).outcome, TrialOutcome::fails);
  EXPECT_EQ(judge_fall({0, 10}, {1, 0.5}, 0, false).outcome, TrialOutcome::unknown);
  // Falls, and loses it again.
  EXPECT_EQ(judge_fall(steps, {5, 3, 2, 2, 2, 3, 4, 4.5, 4.6}, 0, false).outcome, TrialOutcome::fails);
}

TEST(CriticalRateSearch, OfAQuadraticLossIsExact) {
  // L(w − η·u) − L(w) = −η·gᵀu + η²·uᵀHu/2 with gᵀu = 3 and uᵀHu = 12.
  for (const double start : {1e-6, 1e-3, 40.0}) {
    const auto found = find_critical_rate(3, [](double rate) { return -3 * rate + 6 * rate * rate; }, {start});
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->rate(), 0.5, 0.5 * 0.03);
  }
  EXPECT_FALSE(find_critical_rate(3, [](double rate) { return -rate; }));
}

}  // namespace
}  // namespace plumb::check
