#include "plumb/report/report_parts.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "plumb/nn/residual/residual.h"

namespace plumb {
namespace {

TEST(SchemeTitles, AreThoseOfTheRegisteredSchemes) {
  std::set<std::string> titles;
  for (const std::string& scheme : residual_schemes().names())
    EXPECT_TRUE(titles.insert(display_name(scheme)).second) << scheme;
  EXPECT_EQ(display_name("post-ln"), "Post-LN");
  EXPECT_EQ(display_name("residual-dual"), "ResiDual");
  EXPECT_EQ(display_name("n/da"), "n/da");
}

TEST(Tables, ARowHasThreeCellsForAnInterval) {
  Table table{"id", "title", "caption", {"scheme", "mean", "low", "high", "loss", "seed"}};
  const double infinity = std::numeric_limits<double>::infinity();
  table.row("pre-ln", Interval{1, 0.5, infinity, 3}, infinity, int64_t{4});
  EXPECT_EQ(table.rows, Json::array({{"pre-ln", 1.0, 0.5, nullptr, nullptr, 4}}));
}

}  // namespace
}  // namespace plumb
