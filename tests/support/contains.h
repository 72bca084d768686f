// Checks of a text's parts, which show the text if they fail.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

namespace plumb::test {

inline ::testing::AssertionResult contains(const char*, const char*, std::string_view text, std::string_view part) {
  if (text.find(part) != std::string_view::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "there is no \"" << part << "\" in:\n" << text;
}

inline ::testing::AssertionResult lacks(const char*, const char*, std::string_view text, std::string_view part) {
  if (text.find(part) == std::string_view::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "there is \"" << part << "\" in:\n" << text;
}

}  // namespace plumb::test

#define EXPECT_CONTAINS(text, part) EXPECT_PRED_FORMAT2(plumb::test::contains, text, part)
#define ASSERT_CONTAINS(text, part) ASSERT_PRED_FORMAT2(plumb::test::contains, text, part)
#define EXPECT_LACKS(text, part) EXPECT_PRED_FORMAT2(plumb::test::lacks, text, part)
