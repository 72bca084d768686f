#include "plumb/check/budget.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plumb/base/error.h"

namespace plumb::check {
namespace {

TEST(Budget, IsAShareATimeOrANumberOfGradients) {
  EXPECT_EQ(parse_budget("5%", 5000).gradients, 250);
  EXPECT_EQ(parse_budget("0.1%", 5).gradients, 1);
  EXPECT_EQ(parse_budget("250g", 10).gradients, 250);
  EXPECT_TRUE(std::isinf(parse_budget("250g", 10).seconds));
  EXPECT_EQ(parse_budget("2min", 10).seconds, 120);
  EXPECT_EQ(parse_budget("90s", 10).seconds, 90);
  EXPECT_EQ(parse_budget("1.5h", 10).seconds, 5400);
}

TEST(Budget, SufficesForShortRunsUnlessItIsGiven) {
  EXPECT_EQ(usual_budget(40'000).gradients, 2000);
  EXPECT_EQ(usual_budget(400).gradients, 250);
}

TEST(Budget, RefusesAnythingElse) {
  for (const char* text : {"", "5", "-5%", "0g", "nan%", "five%", "5 %", "2m", "1e300h"})
    EXPECT_THROW(parse_budget(text, 100), Error) << text;
}

}  // namespace
}  // namespace plumb::check
