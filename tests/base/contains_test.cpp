#include "plumb/base/contains.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace plumb {
namespace {

TEST(Contains, FindsByAMemberAndByAKey) {
  std::vector<std::pair<std::string, int>> pairs = {{"a", 1}, {"b", 2}, {"b", 3}};
  EXPECT_EQ(find_by(pairs, &std::pair<std::string, int>::second, 2), &pairs[1]);
  EXPECT_EQ(find_by(pairs, &std::pair<std::string, int>::second, 4), nullptr);
  EXPECT_EQ(find_value(pairs, "b"), &pairs[1].second);  // the first
  EXPECT_EQ(find_value(pairs, "c"), nullptr);
}

}  // namespace
}  // namespace plumb
