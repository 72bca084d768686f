// Label rates of continuations, compared with sums by hand.
#include "plumb/metrics/label_rates.h"

#include <gtest/gtest.h>

#include "plumb/base/error.h"

namespace plumb {
namespace {

TEST(LabelRates, FollowTheirDefinitions) {
  const LabelRates rates = label_rates({{0.1, 0.7, 0.2}, {0.3, 0.4}, {0.5}});
  EXPECT_DOUBLE_EQ(rates.mean.value, (0.1 + 0.7 + 0.2 + 0.3 + 0.4 + 0.5) / 6);
  EXPECT_DOUBLE_EQ(rates.expected_maximum.value, (0.7 + 0.4 + 0.5) / 3);
  EXPECT_DOUBLE_EQ(rates.at_least_once.value, 2.0 / 3);  // 0.5 is enough
}

/// Of the samples of two prompts with maxima a and b, a quarter has a twice, a quarter b twice, and half has both.
TEST(LabelRates, IntervalsAreOverPrompts) {
  const LabelRates two = label_rates({{0.2, 0.1}, {0.9, 0.3}});
  ASSERT_TRUE(two.expected_maximum.interval);
  EXPECT_DOUBLE_EQ(two.expected_maximum.interval->low, 0.2);
  EXPECT_DOUBLE_EQ(two.expected_maximum.interval->high, 0.9);
  EXPECT_DOUBLE_EQ(two.mean.interval->low, 0.15);
  EXPECT_DOUBLE_EQ(two.at_least_once.interval->high, 1);
  const LabelRates equal = label_rates({{0.2}, {0.2}, {0.2}});
  EXPECT_NEAR(equal.expected_maximum.interval->high - equal.expected_maximum.interval->low, 0, 1e-12);
  EXPECT_FALSE(label_rates({{0.2, 0.9}}).mean.interval);  // one prompt says nothing about others
}

TEST(LabelRates, NeedSamples) {
  EXPECT_THROW(label_rates({}), Error);
  EXPECT_THROW(label_rates({{0.1}, {}}), Error);
}

}  // namespace
}  // namespace plumb
