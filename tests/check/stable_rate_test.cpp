#include "plumb/check/stable_rate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

namespace plumb::check {
namespace {

/// Standard normal quantile of 0.9.
constexpr double kNinetieth = 1.2815515655446004;

TEST(RateBelief, BeginsAsANormalDistributionOfLogarithms) {
  const RateEstimate estimate = RateBelief(1e-3, 1.5).estimate();
  EXPECT_NEAR(std::log2(estimate.estimate), std::log2(1e-3), 0.01);
  EXPECT_NEAR(std::log2(estimate.low), std::log2(1e-3) - 1.5 * kNinetieth, 0.02);
  EXPECT_NEAR(std::log2(estimate.high), std::log2(1e-3) + 1.5 * kNinetieth, 0.02);
  EXPECT_NEAR(estimate.octaves(), 3 * kNinetieth, 0.02);
}

TEST(RateBelief, BeginsAroundTheFirstStepsCriticalRateOrThePlannedOne) {
  const auto median = [](std::optional<double> critical, StepLength length, double planned) {
    return std::log2(belief_before_trials(critical, 10, length, planned).estimate().estimate);
  };
  EXPECT_NEAR(median(2, StepLength::gradient, 1e-3), std::log2(0.14), 0.02);
  EXPECT_NEAR(median(2, StepLength::sign, 1e-3), std::log2(0.008), 0.02);
  EXPECT_NEAR(median({}, StepLength::gradient, 0.3), std::log2(0.3), 0.02);
  EXPECT_NEAR(median({}, StepLength::sign, 0), std::log2(1e-3), 0.02);
}

TEST(RateBelief, LiesBetweenATrialThatTrainedAndOneThatFailed) {
  RateBelief belief(1e-3, 4);
  belief.see(2e-3, false);
  belief.see(8e-3, true);
  // In the middle, moved by the share of the wide prior that lies below 2e-3 and survives as a lapse: of about 0.6, 3%,
  // against the 0.2 between the rates.
  EXPECT_NEAR(std::log2(belief.estimate().estimate), std::log2(4e-3), 0.25);
  EXPECT_GT(belief.estimate().low, 1e-3);
  EXPECT_LT(belief.estimate().high, 11e-3);
}

TEST(RateBelief, OneContradictingTrialDoesNotDecideAgainstMany) {
  RateBelief belief(1e-3, 3);
  for (int i = 0; i < 4; ++i) belief.see(1e-3, false);
  belief.see(2.5e-4, true);  // a failure far below rates that trained four times
  EXPECT_GT(belief.estimate().estimate, 1e-3);
}

TEST(RateBelief, ShiftsWithTheUnitOfTheRate) {
  RateBelief small(1e-4, 2), large(1, 2);
  for (const double factor : {0.5, 2.0, 8.0}) {
    small.see(1e-4 * factor, factor > 4);
    large.see(factor, factor > 4);
  }
  EXPECT_NEAR(large.estimate().estimate / small.estimate().estimate, 1e4, 60);
}

TEST(RateBelief, QuantilesAreOrdered) {
  RateBelief belief(3e-3, 2);
  belief.see(1e-2, true);
  double before = 0;
  for (double probability = 0.05; probability < 1; probability += 0.05) {
    EXPECT_GT(belief.quantile(probability), before);
    before = belief.quantile(probability);
  }
}

TEST(RateToRecommend, LiesBelowTheLargestStableRateWhateverIsPlanned) {
  const auto octaves = [](double stable, double planned, StepLength length) {
    return std::log2(rate_to_recommend(stable, planned, length) / stable);
  };
  for (const double planned : {1e-30, 1e-6, 1e3}) {
    EXPECT_NEAR(octaves(1, planned, StepLength::gradient), -1.25, 1e-12);
    EXPECT_NEAR(octaves(std::exp2(-2), planned, StepLength::gradient), -0.95, 1e-12);
    EXPECT_NEAR(octaves(2, planned, StepLength::gradient), -1.4, 1e-12);
    EXPECT_NEAR(octaves(std::exp2(-20), planned, StepLength::gradient), -0.9, 1e-12);
    EXPECT_NEAR(octaves(std::exp2(20), planned, StepLength::gradient), -1.5, 1e-12);
    EXPECT_NEAR(octaves(std::exp2(-4), planned, StepLength::sign), -3.625, 1e-12);
    EXPECT_NEAR(octaves(std::exp2(-8), planned, StepLength::sign), -1.625, 1e-12);
    EXPECT_NEAR(octaves(std::exp2(-20), planned, StepLength::sign), -0.5, 1e-12);
    EXPECT_NEAR(octaves(std::exp2(20), planned, StepLength::sign), -6, 1e-12);
    EXPECT_NEAR(octaves(std::exp2(-2), planned, StepLength::weights), -2.125, 1e-12);
    EXPECT_NEAR(octaves(std::exp2(-20), planned, StepLength::weights), -0.5, 1e-12);
  }
  // A planned rate that is as good stays as it is.
  for (const double near : {-0.49, 0.49})
    EXPECT_EQ(rate_to_recommend(1, std::exp2(-1.25 + near), StepLength::gradient), std::exp2(-1.25 + near));
  EXPECT_NEAR(octaves(1, std::exp2(-1.25 + 0.51), StepLength::gradient), -1.25, 1e-12);
  EXPECT_NEAR(octaves(1, 0, StepLength::gradient), -1.25, 1e-12);
}

// The smallest shares of three pairs of docs/check.md in which a warm-up raised the rate by more than a factor of 2.
TEST(WarmUpLift, GrowsAsTheGradientVanishes) {
  EXPECT_EQ(warm_up_lift({}), 0.66);
  EXPECT_EQ(warm_up_lift(0.5), 0.66);
  EXPECT_NEAR(warm_up_lift(5e-6), 0.66 + 0.18 * 3, 1e-12);
  for (const double share : {6.7e-8, 1.6e-10, 2.2e-6}) EXPECT_GT(warm_up_lift(share), 1);
  EXPECT_LT(warm_up_lift(0), 2.5);
}

}  // namespace
}  // namespace plumb::check
