#include "plumb/nn/parameters.h"

#include <gtest/gtest.h>

#include "plumb/base/error.h"

namespace plumb {
namespace {

TEST(Parameters, AreDeclaredOnce) {
  Parameters parameters(at::kDouble);
  parameters.add("a", {2, 3}, Role::weight);
  parameters.add_buffer("mean", {3}, 0);
  EXPECT_THROW((void)parameters.add("a", {1}, Role::bias), Error);
  EXPECT_THROW((void)parameters.add_constant("a", {1}, 1), Error);
  EXPECT_THROW((void)parameters.add_buffer("mean", {3}, 0), Error);
  EXPECT_EQ(parameters.count(), 6);
  EXPECT_EQ(parameters.buffers().size(), 1U);
}

}  // namespace
}  // namespace plumb
