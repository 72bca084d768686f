// Power laws: exact data, the closed form for three sizes, and the stationarity of least squares.
#include "plumb/analysis/power_law.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plumb/base/error.h"

namespace plumb {
namespace {

const std::vector<double> kSizes = {1.5e5, 2.5e5, 4e5, 8.3e5, 1.3e6, 2.5e6};

std::vector<double> losses_of(double limit, double scale, double exponent) {
  std::vector<double> losses;
  for (const double size : kSizes) losses.push_back(limit + std::pow(scale / size, exponent));
  return losses;
}

TEST(PowerLaw, FindsTheLawOfExactData) {
  const PowerLaw found = fit_power_law(kSizes, losses_of(1.7, 5e4, 0.35));
  EXPECT_NEAR(found.limit, 1.7, 1e-6);
  EXPECT_NEAR(found.exponent, 0.35, 1e-6);
  EXPECT_NEAR(found.scale / 5e4, 1, 1e-5);
  EXPECT_LT(found.residual, 1e-7);
  EXPECT_NEAR(found.at(1e7), 1.7 + std::pow(5e-3, 0.35), 1e-6);
}

TEST(PowerLaw, NeedsNoLimit) {
  const PowerLaw found = fit_power_law(kSizes, losses_of(0, 8.8e13, 0.076));
  EXPECT_NEAR(found.limit, 0, 1e-4);
  EXPECT_NEAR(found.exponent, 0.076, 1e-5);
  EXPECT_NEAR(found.at(1e7), std::pow(8.8e6, 0.076), 1e-5);
}

/// A negative limit is not allowed: the fit is the best with limit 0, whose amplitude has a closed form.
TEST(PowerLaw, HasNoNegativeLimit) {
  std::vector<double> losses = losses_of(0, 5e7, 0.3);
  for (double& loss : losses) loss -= 1;
  const PowerLaw found = fit_power_law(kSizes, losses);
  EXPECT_EQ(found.limit, 0);
  double product = 0;
  double square = 0;
  for (size_t i = 0; i < kSizes.size(); ++i) {
    const double feature = std::pow(kSizes[i], -found.exponent);
    product += feature * losses[i];
    square += feature * feature;
  }
  EXPECT_NEAR(std::pow(found.scale, found.exponent) / (product / square), 1, 1e-9);
}

/// Through three sizes x, kx, k²x there is one law: α = ln((y₁ − y₂)/(y₂ − y₃))/ln k, and the limit is Aitken's
/// (y₁y₃ − y₂²)/(y₁ + y₃ − 2y₂).
TEST(PowerLaw, GoesThroughThreeSizes) {
  const double y1 = 5.31, y2 = 4.62, y3 = 4.25;
  const PowerLaw found = fit_power_law({1e5, 3e5, 9e5}, {y1, y2, y3});
  EXPECT_NEAR(found.exponent, std::log((y1 - y2) / (y2 - y3)) / std::log(3.0), 1e-6);
  EXPECT_NEAR(found.limit, (y1 * y3 - y2 * y2) / (y1 + y3 - 2 * y2), 1e-5);
  EXPECT_NEAR(found.at(3e5), y2, 1e-7);
}

/// With noise, the derivatives of the sum of squares by limit, amplitude and exponent vanish.
TEST(PowerLaw, HasTheLeastSquares) {
  std::vector<double> losses = losses_of(3.1, 3e5, 0.4);
  const std::vector<double> noise = {0.012, -0.02, 0.008, 0.011, -0.015, 0.004};
  for (size_t i = 0; i < losses.size(); ++i) losses[i] += noise[i];
  const PowerLaw found = fit_power_law(kSizes, losses);
  ASSERT_GT(found.limit, 0);
  double sum = 0, by_amplitude = 0, by_exponent = 0, squares = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    const double feature = std::pow(found.scale / kSizes[i], found.exponent);
    const double residual = losses[i] - found.limit - feature;
    sum += residual;
    by_amplitude += residual * feature;
    by_exponent += residual * feature * std::log(kSizes[i] / 1e6);
    squares += residual * residual;
  }
  EXPECT_NEAR(sum, 0, 1e-9);
  EXPECT_NEAR(by_amplitude, 0, 1e-9);
  EXPECT_NEAR(by_exponent, 0, 1e-7);
  EXPECT_NEAR(found.residual, std::sqrt(squares / 6), 1e-9);
  EXPECT_LT(found.residual,
            std::sqrt((0.012 * 0.012 + 0.02 * 0.02 + 0.008 * 0.008 + 0.011 * 0.011 + 0.015 * 0.015 + 0.004 * 0.004) /
                      6));  // the noise, which is the true law's residual
}

TEST(PowerLaw, IsAConstantWhereLossesGrow) {
  const PowerLaw found = fit_power_law({1, 2, 4}, {3, 4, 5});
  EXPECT_EQ(found.scale, 0);
  EXPECT_TRUE(std::isnan(found.exponent));
  EXPECT_NEAR(found.limit, 4, 1e-12);
  EXPECT_EQ(found.at(100), found.limit);
}

/// Losses that fall by the same amount with every doubling need an exponent of 0; a fall between only the first two
/// sizes needs an infinite one.
TEST(PowerLaw, SaysThatAnExponentIsABound) {
  const PowerLaw slow = fit_power_law({1, 2, 4, 8}, {9.03, 9.02, 9.01, 9});
  EXPECT_NEAR(slow.exponent, PowerLaw::kSmallestExponent, 1e-5);
  EXPECT_TRUE(slow.at_bound);
  const PowerLaw fast = fit_power_law({1, 2, 4}, {5, 3, 3});
  EXPECT_NEAR(fast.exponent, PowerLaw::kLargestExponent, 1e-2);
  EXPECT_TRUE(fast.at_bound);
  EXPECT_FALSE(fit_power_law(kSizes, losses_of(1.7, 5e4, 0.35)).at_bound);
  EXPECT_FALSE(fit_power_law(kSizes, losses_of(1.7, 5e4, 0.02)).at_bound);
  EXPECT_FALSE(fit_power_law({1, 2, 4}, {3, 4, 5}).at_bound);  // no exponent
}

TEST(PowerLaw, RefusesWhatHasNoFit) {
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(fit_power_law({1, 2, 4}, {5, infinite, 3}).at(8)));
  EXPECT_THROW(fit_power_law({1, 2, 4}, {5, 4}), Error);
  EXPECT_THROW(fit_power_law({1, 2, 2}, {5, 4, 3}), Error);
  EXPECT_THROW(fit_power_law({0, 1, 2}, {5, 4, 3}), Error);
}

}  // namespace
}  // namespace plumb
