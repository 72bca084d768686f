#include "plumb/report/display_name.h"
#include "plumb/report/report_parts.h"

#include <gtest/gtest.h>

#include <cmath>
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

TEST(Intervals, AreListedByName) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(with_intervals({{"Post-LN", {2, 1.5, 2.5, 3}}, {"Pre-LN", {-0.5, none, none, 1}}, {"ReZero", {none}}}, 2),
            "Post-LN 2 (1.5 to 2.5), Pre-LN −0.5, ReZero no number");
  std::vector<std::pair<std::string, Interval>> many;
  for (int i = 1; i <= 5; ++i) many.push_back({"arm " + std::to_string(i % 5), {double(i), i - 0.5, i + 0.5, 3}});
  EXPECT_EQ(with_intervals(many, 2), "from 1 (0.5 to 1.5) for arm 1 to 5 (4.5 to 5.5) for arm 0");
}

TEST(Figures, NamesLeaveOutWhatAllShare) {
  const auto shortened = [](const std::vector<std::string>& names) {
    Figure figure;
    figure.caption = "Losses.";
    for (const std::string& name : names) figure.add(name, "group");
    figure.shorten_names();
    std::vector<std::string> found;
    for (const Series& one : figure.series) found.push_back(one.name);
    found.push_back(figure.caption);
    return found;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(shortened({"Post-LN, layers 6, warm-up 20", "Pre-LN, layers 6, warm-up 20", "Pre-LN, layers 6, runs"}),
            (Names{"Post-LN, warm-up 20", "Pre-LN, warm-up 20", "Pre-LN, runs", "Losses. Common to all: layers 6."}));
  EXPECT_EQ(shortened({"a (2 runs, one seed)", "b (2 runs, one seed)"}),
            (Names{"a (2 runs, one seed)", "b (2 runs, one seed)", "Losses."}));
  EXPECT_EQ(shortened({"Post-LN", "Post-LN, theory"}), (Names{"Post-LN", "Post-LN, theory", "Losses."}));
  EXPECT_EQ(shortened({"Post-LN, warm-up 20"}), (Names{"Post-LN, warm-up 20", "Losses."}));
}

TEST(Figures, SeriesStayValidWhileOthersAreAdded) {
  Figure figure;
  Series& first = figure.add("first", "group", "dashed");
  for (int i = 0; i < 100; ++i) figure.add("other", "group");
  first.point(1, 2.5);
  first.point(0.5, std::nan(""));
  const Json series = figure.to_json()["series"];
  ASSERT_EQ(series.size(), 101U);
  EXPECT_EQ(series[0], Json({{"name", "first"},
                             {"group", "group"},
                             {"x", Json::array({1, 0.5})},
                             {"y", Json::array({2.5, nullptr})},
                             {"style", "dashed"}}));
}

}  // namespace
}  // namespace plumb
