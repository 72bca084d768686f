// Confidence intervals compared with tables, lines with closed forms, (ε, δ) with hand computation.
#include "plumb/analysis/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plumb/base/error.h"

namespace plumb {
namespace {

TEST(StudentT, QuantilesOfThePrintedTables) {
  EXPECT_NEAR(student_t_quantile(0.975, 1), 12.7062047, 1e-6);  // tan(0.475 π)
  EXPECT_NEAR(student_t_quantile(0.975, 2), 4.3026527, 1e-6);
  EXPECT_NEAR(student_t_quantile(0.975, 3), 3.1824463, 1e-6);
  EXPECT_NEAR(student_t_quantile(0.975, 9), 2.2621572, 1e-6);
  EXPECT_NEAR(student_t_quantile(0.975, 30), 2.0422725, 1e-6);
  EXPECT_NEAR(student_t_quantile(0.95, 9), 1.8331129, 1e-6);
  EXPECT_NEAR(student_t_quantile(0.995, 4), 4.6040949, 1e-6);
  EXPECT_NEAR(student_t_quantile(0.975, 100000), 1.9599640, 1e-4);  // the normal distribution
  EXPECT_NEAR(student_t_quantile(0.5, 7), 0, 1e-12);
}

TEST(ConfidenceInterval, MeanAndHalfWidth) {
  // Mean 3, s² = 2.5, n = 5: half-width 2.7764451 · √(2.5/5).
  const Interval interval = confidence_interval({1, 2, 3, 4, 5});
  EXPECT_DOUBLE_EQ(interval.mean, 3);
  EXPECT_NEAR(interval.high - 3, 1.9632432, 1e-6);
  EXPECT_NEAR(3 - interval.low, 1.9632432, 1e-6);
  EXPECT_EQ(interval.count, 5);
}

TEST(ConfidenceInterval, OneValueHasNoWidth) {
  const Interval interval = confidence_interval({4.5});
  EXPECT_EQ(interval.mean, 4.5);
  EXPECT_TRUE(std::isnan(interval.low));
  EXPECT_TRUE(std::isnan(interval.high));
  EXPECT_THROW(confidence_interval({}), Error);
}

TEST(ConfidenceInterval, OfAPositiveQuantityEndsAtZero) {
  const std::vector<double> spread = {1, 2, 30};
  EXPECT_LT(confidence_interval(spread).low, 0);
  EXPECT_EQ(positive_interval(spread).low, 0);
  EXPECT_EQ(positive_interval(spread).high, confidence_interval(spread).high);
  EXPECT_EQ(positive_interval({4, 5, 6}).low, confidence_interval({4, 5, 6}).low);
  EXPECT_EQ(size_interval({1, 4}).mean, geometric_interval({1, 4}).mean);
  EXPECT_NEAR(size_interval({1, 4}).mean, 2, 1e-12);
  EXPECT_EQ(size_interval({0, 4}).mean, 2);
  EXPECT_EQ(size_interval({0, 4}).low, 0);
}

TEST(MeanCorrelation, IsThatOfAllPairsByHand) {
  const double kInfinity = std::numeric_limits<double>::infinity();
  // Deviations (−1, 0, 1), (−1, 1, 0) and (1, 0, −1): 1/2, −1 and −1/2.
  EXPECT_NEAR(mean_correlation({{1, 2, 3}, {10, 12, 11}}), 0.5, 1e-15);
  EXPECT_NEAR(mean_correlation({{1, 2, 3}, {10, 12, 11}, {7, 6, 5}}), -1.0 / 3, 1e-15);
  EXPECT_NEAR(mean_correlation({{1, 2, 3}, {10, 12, 11}, {4, 4, 4}, {1, kInfinity, 2}}), 0.5, 1e-15);
  EXPECT_TRUE(std::isnan(mean_correlation({{1, 2, 3}, {4, 4, 4}})));
  EXPECT_TRUE(std::isnan(mean_correlation({{1, 2}, {3, 5}})));
  EXPECT_TRUE(std::isnan(mean_correlation({})));
  EXPECT_THROW(mean_correlation({{1, 2, 3}, {1, 2}}), Error);
}

TEST(FitLine, ExactLine) {
  const LineFit fit = fit_line({1, 2, 3, 4}, {1, -1, -3, -5});
  EXPECT_NEAR(fit.slope, -2, 1e-14);
  EXPECT_NEAR(fit.intercept, 3, 1e-14);
  EXPECT_NEAR(fit.slope_error, 0, 1e-7);
  EXPECT_NEAR(fit.r_squared, 1, 1e-14);
}

TEST(FitLine, NoisyLineByHand) {
  // x̄ = 2.5, ȳ = 2.5, Sxx = 5, Sxy = 4, Syy = 5: slope 0.8, RSS = 5 − 0.8·4 = 1.8, R² = 0.64, error √(0.9/5).
  const LineFit fit = fit_line({1, 2, 3, 4}, {1, 3, 2, 4});
  EXPECT_NEAR(fit.slope, 0.8, 1e-14);
  EXPECT_NEAR(fit.intercept, 0.5, 1e-14);
  EXPECT_NEAR(fit.slope_error, std::sqrt(0.18), 1e-14);
  EXPECT_NEAR(fit.r_squared, 0.64, 1e-14);
}

TEST(FitLine, TwoPointsHaveNoErrorAndOneHasNoLine) {
  EXPECT_TRUE(std::isnan(fit_line({0, 1}, {2, 5}).slope_error));
  EXPECT_THROW(fit_line({1, 1}, {2, 5}), Error);
  EXPECT_THROW(fit_line({1, 2}, {2}), Error);
}

TEST(Bounded, EpsilonAndDeltaByHand) {
  const std::vector<double> sample = {8, 8, 9, 9, 10, 10, 11, 15};  // mean 10
  EXPECT_DOUBLE_EQ(bounded_delta(sample, 0.2), 0.125);              // 15 alone is above 12
  EXPECT_DOUBLE_EQ(bounded_delta(sample, 0.05), 0.25);
  EXPECT_DOUBLE_EQ(bounded_delta(sample, 0.5), 0);          // 15 is not above 15
  EXPECT_NEAR(bounded_epsilon(sample, 0.125), 0.1, 1e-14);  // one of eight may lie above 11
  EXPECT_NEAR(bounded_epsilon(sample, 0.124), 0.5, 1e-14);
  EXPECT_NEAR(bounded_epsilon(sample, 0.9), 0, 1e-14);  // never negative
  // The two are consistent: the ε for a δ has at most that δ.
  EXPECT_LE(bounded_delta(sample, bounded_epsilon(sample, 0.25)), 0.25);
  EXPECT_EQ(bounded_delta({3, 3, 3}, 0.1), 0);
}

}  // namespace
}  // namespace plumb
