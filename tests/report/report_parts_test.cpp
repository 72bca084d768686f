#include "plumb/report/report_parts.h"

#include <gtest/gtest.h>

#include <set>

#include "plumb/nn/residual/residual.h"

namespace plumb {
namespace {

TEST(SchemeTitles, AreThoseOfTheRegisteredSchemes) {
  std::vector<std::string> titled;
  std::set<std::string> titles;
  for (const auto& [scheme, title] : scheme_titles()) {
    titled.push_back(scheme);
    EXPECT_TRUE(titles.insert(title).second) << title;
    EXPECT_EQ(display_name(scheme), title);
  }
  EXPECT_EQ(titled, residual_schemes().names());
  EXPECT_EQ(display_name("n/da"), "n/da");
}

}  // namespace
}  // namespace plumb
