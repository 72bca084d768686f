// Names of parameterized tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace plumb::test {

/// The parameter, with underscores for what names of tests may not have.
inline std::string name_of_test(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

}  // namespace plumb::test
