#include "plumb/check/stable_rate.h"

#include <gtest/gtest.h>

#include <cmath>

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

TEST(RateToRecommend, LiesBetweenThePlannedAndTheLargestStableRate) {
  const auto octaves = [](double planned, bool signs) { return -std::log2(rate_to_recommend(1, planned, signs)); };
  // 1.2 + 0.4·6 and 0.4 + 0.2·6, where the planned rate lies 6 octaves lower.
  EXPECT_NEAR(octaves(std::exp2(-6), true), 3.6, 1e-12);
  EXPECT_NEAR(octaves(std::exp2(-6), false), 1.6, 1e-12);
  // A planned rate that is near stays as it is.
  EXPECT_EQ(octaves(std::exp2(-3.5), true), 3.5);
  EXPECT_EQ(octaves(std::exp2(-2), false), 2);
  EXPECT_NEAR(octaves(std::exp2(-3.75), true), 2.7, 1e-12);
  // One that is too large, or far too small, says nothing.
  EXPECT_NEAR(octaves(1e3, true), 3, 1e-12);
  EXPECT_NEAR(octaves(1e3, false), 1.5, 1e-12);
  EXPECT_NEAR(octaves(1e-30, true), 3, 1e-12);
  EXPECT_NEAR(octaves(0, false), 1.5, 1e-12);
}

}  // namespace
}  // namespace plumb::check
