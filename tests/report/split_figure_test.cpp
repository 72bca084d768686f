// The division of figures of many schemes; intervals in words.
#include "plumb/report/split_figure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace plumb {
namespace {

Figure figure_of(const std::vector<std::string>& schemes) {
  Figure figure{"id", "Title", "Caption.", "line"};
  for (const std::string& scheme : schemes) {
    for (const char* what : {", a", ", b"}) figure.series.push_back({scheme + what, scheme});
  }
  figure.series.push_back({"bound", "theory"});
  figure.notes = {"s2 is not drawn.", "A note on all."};
  return figure;
}

TEST(SplitFigure, FewSchemesStayInOne) {
  const std::vector<std::string> schemes = {"pre-ln", "s1", "s2", "s3", "s4", "s5", "s6", "s7"};
  const std::vector<Figure> parts = split_by_scheme(figure_of(schemes), schemes);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].to_json(), figure_of(schemes).to_json());
}

TEST(SplitFigure, ManySchemesAreDividedWithTwoInEach) {
  std::vector<std::string> schemes = {"post-ln"};
  for (int i = 1; i <= 12; ++i) schemes.push_back("s" + std::to_string(i));
  schemes.insert(schemes.begin() + 4, "pre-ln");
  std::vector<std::string> drawn = schemes;
  std::erase(drawn, "s12");  // a scheme of the study that this figure does not have
  const std::vector<Figure> parts = split_by_scheme(figure_of(drawn), schemes);
  ASSERT_EQ(parts.size(), 3U);  // of eleven others: 3, 4 and 4
  std::multiset<std::string> others;
  for (size_t k = 0; k < 3; ++k) {
    std::multiset<std::string> groups;
    for (const Series& series : parts[k].series) groups.insert(series.group);
    EXPECT_EQ(groups.count("post-ln"), 2U);
    EXPECT_EQ(groups.count("pre-ln"), 2U);
    EXPECT_EQ(groups.count("theory"), 1U);
    EXPECT_LE(groups.size(), 2U * 7U + 1U);
    for (const std::string& group : groups) {
      if (group.front() == 's') others.insert(group);
    }
  }
  EXPECT_EQ(others.size(), 2U * 11U);
  for (int i = 1; i <= 11; ++i) EXPECT_EQ(others.count("s" + std::to_string(i)), 2U) << i;
  EXPECT_EQ(parts[0].id, "id");
  EXPECT_EQ(parts[1].id, "id_part2");
  EXPECT_EQ(parts[2].title, "Title");
  EXPECT_EQ(parts[2].to_json()["part_of"], "id");
  EXPECT_EQ(parts[2].to_json()["part"], "s8, s9, s10, s11");
  EXPECT_EQ(parts[0].notes.size(), 2U);
  EXPECT_EQ(parts[1].notes, std::vector<std::string>{"A note on all."});
  EXPECT_EQ(part_with_scheme(parts, "post-ln"), "id");
  EXPECT_EQ(part_with_scheme(parts, "s11"), "id_part3");
  EXPECT_EQ(part_with_scheme(parts, ""), "id");
}

TEST(IntervalInWords, HasItsEndsIfThereAreAny) {
  const double none = std::nan("");
  EXPECT_EQ(with_interval({2.7182, 0.5391, 13.71, 3}), "2.72 (0.539 to 13.7)");
  EXPECT_EQ(with_interval({-0.1811, -0.2068, -0.1555, 3}, 2), "−0.18 (−0.21 to −0.16)");
  EXPECT_EQ(with_interval({2.7182, none, none, 1}), "2.72");
  EXPECT_EQ(with_interval({none, none, none, 0}), "no number");
  EXPECT_EQ(seeds_in_words(1), "one seed, no interval");
  EXPECT_EQ(seeds_in_words(3), "3 seeds, 95% intervals");
}

}  // namespace
}  // namespace plumb
