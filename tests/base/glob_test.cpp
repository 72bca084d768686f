#include "plumb/base/glob.h"

#include <gtest/gtest.h>

namespace plumb {
namespace {

TEST(Glob, MatchesWholeTexts) {
  for (const auto& [pattern, text] : {std::pair{"", ""},
                                      {"*", ""},
                                      {"*", "a.b"},
                                      {"a.b", "a.b"},
                                      {"a*b", "ab"},
                                      {"a*b", "a.x.b"},
                                      {"a?c", "abc"},
                                      {"*.bias", "encoder.linear1.bias"},
                                      {"*norm*", "layers.0.norm1.weight"},
                                      {"**a**", "a"},
                                      {"*ab", "aab"}}) {
    EXPECT_TRUE(glob_matches(pattern, text)) << pattern << ' ' << text;
  }
  for (const auto& [pattern, text] : {std::pair{"", "a"},
                                      {"a", ""},
                                      {"a", "ab"},
                                      {"b", "ab"},
                                      {"a?", "a"},
                                      {"a?c", "ac"},
                                      {"*.bias", "bias"},
                                      {"a*b", "abc"},
                                      {"a.b", "axb"}}) {
    EXPECT_FALSE(glob_matches(pattern, text)) << pattern << ' ' << text;
  }
}

TEST(Glob, CountsTheCharactersThatAreWrong) {
  EXPECT_EQ(glob_distance("kitten", "sitting"), 3U);  // without wildcards, the Levenshtein distance
  EXPECT_EQ(glob_distance("layer.*", "layers.0.weight"), 1U);
  EXPECT_EQ(glob_distance("*.baias", "linear1.bias"), 1U);
  EXPECT_EQ(glob_distance("l?st", "mast"), 1U);
  EXPECT_EQ(glob_distance("abc", ""), 3U);
}

}  // namespace
}  // namespace plumb
