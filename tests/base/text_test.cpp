#include "plumb/base/text.h"

#include <gtest/gtest.h>

#include "plumb/base/error.h"
#include "plumb/base/ragged.h"
#include "plumb/base/registry.h"
#include "plumb/base/utf8.h"
#include "support/errors.h"

namespace plumb {
namespace {

using Words = std::vector<std::string>;

TEST(Text, NearestFindsAMisspelling) {
  const Words known = {"dropout", "residual", "layers"};
  EXPECT_EQ(nearest("droput", known), "dropout");
  EXPECT_EQ(nearest("layer", known), "layers");
  EXPECT_EQ(nearest("residaul", known), "residual");
  EXPECT_EQ(nearest("warmup_steps", known), "");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(Text, NearestComparesNoLongNamesAndNotMillions) {
  const std::string longest(200, 'a');
  EXPECT_EQ(nearest(longest, {longest + "b", longest.substr(1)}), longest.substr(1));
  EXPECT_EQ(nearest(longest + "a", {longest}), "");
  Words many(10'000, "x");
  many.back() = "residual";
  EXPECT_EQ(nearest("residaul", many), "residual");
  many.insert(many.begin(), "x");
  EXPECT_EQ(nearest("residaul", many), "");
}

TEST(Error, CanBeReadHoweverLongANameIs) {
  std::string name;
  for (int i = 0; i < 100'000; ++i) name += "é";
  const Error error("file: no tensor '" + name + "' of 3", "known: " + name);
  for (const std::string& text : {std::string(error.what()), error.hint()}) {
    EXPECT_LT(text.size(), 2100U);
    EXPECT_TRUE(is_valid_utf8(text));
  }
  EXPECT_TRUE(std::string_view(error.what()).starts_with("file: no tensor 'éé"));
  EXPECT_TRUE(std::string_view(error.what()).ends_with("éé' of 3"));
  const std::string usual(2000, 'x');
  EXPECT_EQ(Error(usual).what(), usual);
  (void)Error(std::string(5000, '\x80')).what();  // no characters at all
}

TEST(Text, JoinsAndSplits) {
  EXPECT_EQ(join({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(join({"a"}, "-"), "a");
  EXPECT_EQ(join({}), "");
  EXPECT_EQ(split("a\t\tb", '\t'), (Words{"a", "", "b"}));
  EXPECT_EQ(split("", ','), Words{""});
  EXPECT_EQ(split("a,", ','), (Words{"a", ""}));
}

TEST(Text, ReplacesWhatItFinds) {
  const auto replaced = [](std::string text, const char* from, const char* to) {
    replace_all(text, from, to);
    return text;
  };
  EXPECT_EQ(replaced("a-b--c", "-", " "), "a b  c");
  EXPECT_EQ(replaced("aaa", "a", "aa"), "aaaaaa");  // what it has put in is not searched
  EXPECT_EQ(replaced("aaa", "aa", ""), "a");
  EXPECT_EQ(replaced("", "a", "b"), "");
}

TEST(Text, GroupsDigitsByThousands) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1000), "1,000");
  EXPECT_EQ(with_thousands(1234567), "1,234,567");
  EXPECT_EQ(with_thousands(-1234), "-1,234");
}

TEST(Text, ShowsDurationsInTheUnitThatFits) {
  EXPECT_EQ(duration(0.4), "0 s");
  EXPECT_EQ(duration(59.4), "59 s");
  EXPECT_EQ(duration(59.6), "1:00 min");
  EXPECT_EQ(duration(187), "3:07 min");
  EXPECT_EQ(duration(7500), "2:05 h");
}

TEST(Registry, FindsByNameAndNamesTheNearestOtherwise) {
  Registry<int (*)()> registry("norm");
  EXPECT_TRUE(registry.add("layer", "x", "Ba et al. 2016", [] { return 1; }));
  EXPECT_TRUE(registry.add("batch", "x", "Ioffe and Szegedy 2015", [] { return 2; }));
  EXPECT_FALSE(registry.add("layer", "again", "", [] { return 3; }));
  EXPECT_EQ(registry.at("layer").make(), 1);
  EXPECT_EQ(registry.names(), (Words{"batch", "layer"}));
  const Error error = test::error_of([&] { registry.at("leyer"); });
  EXPECT_STREQ(error.what(), "unknown norm 'leyer'");
  EXPECT_EQ(error.hint(), "did you mean 'layer'? known: batch, layer");
}

TEST(Ragged, KnowsWhereEachSequenceLies) {
  const Ragged ragged({3, 0, 5});
  EXPECT_EQ(ragged.sequences(), 3);
  EXPECT_EQ(ragged.tokens(), 8);
  EXPECT_EQ(ragged.longest(), 5);
  EXPECT_EQ(ragged.begin(2), 3);
  EXPECT_EQ(ragged.length(1), 0);
  EXPECT_EQ(ragged.offsets(), (std::vector<int64_t>{0, 3, 3, 8}));
  EXPECT_EQ(Ragged().sequences(), 0);
  EXPECT_EQ(Ragged().tokens(), 0);
}

}  // namespace
}  // namespace plumb
