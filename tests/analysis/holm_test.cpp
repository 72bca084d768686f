// Claims and tests judged together.
#include "plumb/analysis/holm.h"

#include <gtest/gtest.h>

namespace plumb {
namespace {

// statsmodels.stats.multitest.multipletests(method='holm')
TEST(Holm, PValues) {
  const std::vector<double> adjusted = holm_adjusted({0.01, 0.04, 0.03, 0.5});
  const std::vector<double> expected = {0.04, 0.09, 0.09, 0.5};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(adjusted[i], expected[i], 1e-12);
}

// What stands is what has an adjusted p-value of at most the error.
TEST(Holm, StandingClaims) {
  const auto standing = [](const std::vector<double>& p_values, double error) {
    return holm_standing(p_values.size(),
                         [&](size_t i, size_t n) { return p_values[i] <= error / static_cast<double>(n); });
  };
  for (const std::vector<double>& p_values :
       {std::vector<double>{}, {0.04}, {0.01, 0.04, 0.03, 0.5}, {0.01, 0.02, 0.03}, {0.02, 0.02}, {0.04, 0.001}}) {
    std::vector<bool> expected;
    for (const double adjusted : holm_adjusted(p_values)) expected.push_back(adjusted <= 0.05);
    EXPECT_EQ(standing(p_values, 0.05), expected);
  }
}

}  // namespace
}  // namespace plumb
