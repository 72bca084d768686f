// Figures as SVG: where the axes put numbers, and what is drawn of each kind.
#include "plumb/report/svg.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include "plumb/base/input.h"
#include "plumb/report/data_files.h"
#include "plumb/report/svg_axis.h"
#include "plumb/report/svg_marks.h"
#include "support/contains.h"
#include "support/paths.h"

namespace plumb {
namespace {

std::string drawn(const std::string& kind, const std::string& series, const std::string& y = R"({"label": "y"})") {
  return figure_svg(Json::parse(R"({"id": "f", "title": "T & t", "kind": ")" + kind +
                                R"(", "x": {"label": "x"}, "y": )" + y + R"(, "series": )" + series + "}"),
                    {"post-ln", "pre-ln", "a", "b"});
}

/// The numbers in the first part of the text that matches.
std::vector<double> numbers_in(const std::string& text, const std::string& pattern) {
  std::smatch match;
  if (!std::regex_search(text, match, std::regex(pattern))) throw std::runtime_error(pattern + " is not in " + text);
  std::vector<double> numbers;
  const std::string found = match.str();
  const std::regex number("[0-9.]+");
  for (auto at = std::sregex_iterator(found.begin(), found.end(), number); at != std::sregex_iterator(); ++at)
    numbers.push_back(std::stod(at->str()));
  return numbers;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string labels(const SvgAxis& axis, int count) {
  std::string text;
  for (const Tick& tick : axis.ticks(count)) text += tick.label.empty() ? "" : tick.label + " ";
  return text;
}

TEST(SvgAxis, HasRoundTicks) {
  EXPECT_EQ(labels({Json::object(), {0.1, 0.93}, false}, 5), "0.2 0.4 0.6 0.8 ");
  EXPECT_EQ(labels({Json::object(), {-3, 3}, false}, 7), "−3 −2 −1 0 1 2 3 ");
  EXPECT_EQ(labels({Json::object(), {1, 6}, false}, 20), "1 2 3 4 5 6 ");  // layers are whole
  EXPECT_EQ(labels({Json::object(), {0, 4000}, true}, 5), "0 1,000 2,000 3,000 4,000 ");
  EXPECT_EQ(labels({Json::object(), {0, 4e7}, true}, 2), "0 2.5·10⁷ ");
  EXPECT_EQ(labels({Json::object(), {2, 2}, false}, 2), "2 ");
  EXPECT_EQ(labels({{{"log", true}}, {0.01, 1000}, false}, 6), "0.01 0.1 1 10 100 1,000 ");
  EXPECT_EQ(labels({{{"log", true}}, {1e-8, 1e-2}, false}, 4), "10⁻⁸ 10⁻⁶ 10⁻⁴ 10⁻² ");
  EXPECT_EQ(labels({{{"log", true}}, {0.002, 0.05}, false}, 6), "0.002 0.005 0.01 0.02 0.05 ");
  EXPECT_EQ(labels({{{"log", true}}, {1.5, 3}, false}, 4), "1.5 2.0 2.5 3.0 ");  // less than a decade: linear
  EXPECT_EQ(labels({{{"min", 5}, {"max", 5}}, {1, 2}, false}, 2), "5 ");
}

TEST(SvgAxis, PutsDecadesAtEqualDistances) {
  const SvgAxis axis({{"log", true}}, {1, 10000}, false);
  EXPECT_NEAR(*axis.at(100) - *axis.at(10), *axis.at(10000) - *axis.at(1000), 1e-12);
  EXPECT_NEAR(*axis.at(20) - *axis.at(10), std::log10(2.0) * (*axis.at(10) - *axis.at(1)), 1e-12);
  EXPECT_FALSE(axis.at(0));
  EXPECT_FALSE(axis.at(-1));
  EXPECT_EQ(*axis.at(1e-9), 0);  // below the axis
  const SvgAxis bars(Json::object(), {3, 5}, true);
  EXPECT_EQ(*bars.at(0), 0);
}

TEST(Svg, DrawsLinesWithGapsBandsAndTheirEnd) {
  const std::string svg = drawn("line", R"([{"name": "<a>", "group": "post-ln", "x": [0, 1, 2, 3, 4, 5, 6],
    "y": [0, 1, 4, null, 2, 3, null], "low": [0, 0, 3, null, 1, 2, null], "high": [1, 2, 5, null, 3, 4, null]},
    {"name": "b", "group": "b", "style": "dashed", "x": [0, 6], "y": [5, 5]}])");
  const std::vector<double> path = numbers_in(svg, "<path d=\"M[^\"]*\" fill=\"none\" stroke=\"#cf4a0a\"");
  EXPECT_NEAR(path[2] - path[0], path[4] - path[2], 0.11);          // equal steps in x
  EXPECT_NEAR((path[3] - path[5]) / (path[1] - path[3]), 3, 0.01);  // 1 and 3 up
  EXPECT_TRUE(
      std::regex_search(svg, std::regex("d=\"M[^\"]*M[^\"]*\" fill=\"none\"")));  // the pen is lifted at the gap
  EXPECT_EQ(count_of(svg, "opacity=\"0.16\""), 2U);                               // and so is the band
  EXPECT_CONTAINS(svg, ">&lt;a&gt; (diverged)<");
  EXPECT_CONTAINS(svg, "<title>T &amp; t</title>");
  EXPECT_EQ(count_of(svg, "stroke-dasharray"), 2U);  // the line, and in the legend
  EXPECT_EQ(count_of(svg, "<circle"), 6U);           // five points, and in the legend
}

TEST(Svg, DrawsBarsFromZeroInTheColorsOfTheirGroups) {
  const std::string svg =
      drawn("bar", R"([{"name": "v", "x": ["Post-LN", "b"], "y": [2, 4], "low": [1, 3], "high": [3, 5]}])");
  const std::string bar = "<rect[^>]*height=\"[0-9.]+\" fill=\"";
  const double first = numbers_in(svg, bar + "#cf4a0a")[3], second = numbers_in(svg, bar + "#a8468f")[3];
  EXPECT_NEAR(second / first, 2, 0.01);
  EXPECT_EQ(count_of(svg, "stroke-width=\"1.2\""), 6U);  // three lines of each interval
}

TEST(Svg, DrawsPointsHollowMarkersAndDensities) {
  const std::string points =
      drawn("scatter", R"([{"name": "p", "group": "a", "x": [1, 2], "y": [0, 10]}])", R"({"label": "", "log": true})");
  EXPECT_EQ(count_of(points, "<polygon"), 2U);  // zero has no place on a logarithmic axis; and the legend
  const std::string hollow =
      drawn("line", R"([{"name": "s", "group": "pre-ln", "x": [1, 2, 3], "y": [3, 2, 1], "hollow": [2]}])");
  EXPECT_EQ(count_of(hollow, "stroke=\"#1566c0\" stroke-width=\"2\"/>"), 2U);  // the marker; and the legend's line
  const std::string runs = drawn("line", R"([{"name": "mean", "group": "a", "x": [1, 2], "y": [1, 2]},
      {"name": "mean, runs", "group": "a", "x": [1, 1], "y": [0, 2], "style": "points", "companion": true}])");
  EXPECT_CONTAINS(runs, ">mean</text>");
  EXPECT_LACKS(runs, "mean, runs");  // they are of the mean's entry
  const std::string lone = drawn("line", R"([{"name": "s", "x": [1, 2], "y": [3, null], "style": "dashed"}])");
  EXPECT_EQ(count_of(lone, "<polygon") + count_of(lone, "<circle"), 1U);  // no line would show the point
  const std::string density = drawn("density", R"([{"name": "d", "x": [0, 1, 2], "y": [1e-30, 1, 1e-30]}])",
                                    R"({"label": "density", "log": true, "floor": 1e-9})");
  EXPECT_EQ(count_of(density, "opacity=\"0.15\""), 1U);
}

TEST(Svg, HasTheColorsOfThePage) {
  const std::string palette = read_file(test::source_directory() / "web/report/src/palette.ts");
  size_t place = palette.find("LIGHT");
  for (const std::string color : {kSvgText, kSvgMuted, kSvgGrid, kSvgAxis}) {
    place = palette.find(color, place);
    ASSERT_NE(place, std::string::npos) << color;
  }
  for (size_t index = 0; index < 13; ++index) {
    place = palette.find(group_shade(index), place);
    ASSERT_NE(place, std::string::npos) << group_shade(index);
  }
  EXPECT_LT(place, palette.find("DARK"));
}

TEST(Svg, HoldsWithNothingToDraw) {
  for (const char* kind : {"line", "bar", "scatter", "density"}) {
    for (const char* series :
         {"[]", R"([{"name": "n", "x": [], "y": []}])", R"([{"name": "n", "x": [1], "y": [null]}])",
          R"([{"name": "n", "x": [1, 2], "y": [-1, 0]}])"}) {
      const std::string svg = drawn(kind, series, R"({"log": true})");
      EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
      EXPECT_LACKS(svg, "nan") << kind << series << svg;
      EXPECT_LACKS(svg, "inf");
    }
  }
}

TEST(Svg, OfEveryFigureOfAStudy) {
  const test::TemporaryDirectory folder;
  const Json results = read_json(test::source_directory() / "tests/report/sample_results.json");
  EXPECT_EQ(write_svg(results, folder.path()), results["figures"].size());
  for (const Json& figure : results["figures"]) {
    const std::string svg = read_file(folder / ("figure-" + figure["id"].get<std::string>() + ".svg"));
    EXPECT_CONTAINS(svg, figure["y"]["label"].get<std::string>());
  }
}

TEST(FigureSvg, ANoteInTheLegendHasItsPlace) {
  for (const auto& [values, note] :
       {std::pair<std::string, std::string>{"[null, null]", "no finite value"}, {"[2, null]", "diverged"}}) {
    const std::string svg = drawn("line", R"([{"name": "first", "x": [0, 1], "y": )" + values +
                                              R"(}, {"name": "second", "x": [0, 1], "y": [1, 2]}])");
    const double first = numbers_in(svg, "<text x=\"[^\"]*\"[^>]*>first \\(" + note + "\\)<")[0];
    const double second = numbers_in(svg, "<text x=\"[^\"]*\"[^>]*>second<")[0];
    EXPECT_EQ(second - first, 52 + 7 * static_cast<double>(note.size() + 8)) << "swatch and gap, then the letters";
  }
}

}  // namespace
}  // namespace plumb
