#include "plumb/metrics/ter.h"

#include <gtest/gtest.h>

#include "plumb/base/error.h"

namespace plumb {
namespace {

// TER of one sentence against one reference.
TerScore ter(const std::string& hypothesis, const std::string& reference, const TerOptions& options = {}) {
  return corpus_ter({hypothesis}, {{reference}}, options);
}

TEST(Ter, CountsEachKindOfEditOnce) {
  EXPECT_EQ(ter("a b c d", "a b c d").edits, 0);
  EXPECT_EQ(ter("a x c d", "a b c d").edits, 1);    // substitution
  EXPECT_EQ(ter("a c d", "a b c d").edits, 1);      // insertion
  EXPECT_EQ(ter("a b x c d", "a b c d").edits, 1);  // deletion
  EXPECT_EQ(ter("c d a b", "a b c d").edits, 1);    // a shift of two words
  EXPECT_EQ(ter("d a b c", "a b c d").edits, 1);
  EXPECT_EQ(ter("c d a x", "a b c d").edits, 2);  // a shift, and a substitution
  EXPECT_NEAR(ter("a x c d", "a b c d").score, 25, 1e-12);
}

TEST(Ter, ShiftsOnlyWhatThenMatches) {
  // Snover et al.'s example: shift "this week", substitute both words of "the Saudis", insert "American".
  const TerScore score = ter("THIS WEEK THE SAUDIS denied information published in the new york times",
                             "SAUDI ARABIA denied THIS WEEK information published in the AMERICAN new york times");
  EXPECT_EQ(score.edits, 4);
  EXPECT_NEAR(score.score, 100 * 4 / 13.0, 1e-12);
}

TEST(Ter, DoesNotShiftBlocksLongerThanTenWords) {
  const std::string block = "1 2 3 4 5 6 7 8 9 10";
  const std::string rest = "a b c d e f g h i j k";
  EXPECT_EQ(ter(block + ' ' + rest, rest + ' ' + block).edits, 1);
  EXPECT_GT(ter(block + " 11 " + rest, rest + ' ' + block + " 11").edits, 1);
}

TEST(Ter, DividesByTheMeanLengthOfTheReferencesAndCountsToTheNearest) {
  // 1 edit to the first, 2 to the second; mean length (4 + 2) / 2.
  const TerScore score = corpus_ter({"a b c x"}, {{"a b c d"}, {"a b"}});
  EXPECT_EQ(score.edits, 1);
  EXPECT_EQ(score.reference_length, 3);
  EXPECT_NEAR(score.score, 100 / 3.0, 1e-12);
}

TEST(Ter, SumsOverTheCorpusBeforeDividing) {
  EXPECT_NEAR(corpus_ter({"a b c d", "x"}, {{"a b c d", "y"}}).score, 100 / 5.0, 1e-12);
}

TEST(Ter, AcceptsEmptySentences) {
  EXPECT_EQ(ter("", "").score, 0);
  EXPECT_EQ(ter("a b", "").score, 100);
  EXPECT_EQ(ter("a b", "").edits, 2);
  EXPECT_EQ(ter("", "a b").score, 100);
  EXPECT_EQ(ter("a b c", "a").score, 200);
}

TEST(Ter, IgnoresCaseUnlessToldNotTo) {
  EXPECT_EQ(ter("A Ü ΟΔΟΣ", "a ü οδος").edits, 0);
  EXPECT_EQ(ter("A Ü ΟΔΟΣ", "a ü οδος", {.case_sensitive = true}).edits, 3);
}

TEST(Ter, NormalizesPunctuationWhenAsked) {
  EXPECT_EQ(ter("Anna's boat, 5.5 &lt; 6.", "anna 's boat , 5.5 < 6 .").edits, 7);
  EXPECT_EQ(ter("Anna's boat, 5.5 &lt; 6.", "anna 's boat , 5.5 < 6 .", {.normalize = true}).edits, 0);
  // References are normalized twice, which takes the 's off a word before a full stop.
  EXPECT_EQ(ter("Anna's.", "Anna's.", {.normalize = true}).edits, 2);
  EXPECT_EQ(ter("Anna 's.", "Anna's.", {.normalize = true}).edits, 0);
  EXPECT_EQ(ter("(yes), \"no\": a.b!", "yes no ab", {.remove_punctuation = true}).edits, 0);
}

TEST(Ter, SplitsIdeographsWhenAsked) {
  EXPECT_EQ(ter("小船，カナ", "小 船 ， カナ", {.normalize = true}).edits, 4);
  EXPECT_EQ(ter("小船，カナ", "小 船 ， カナ", {.normalize = true, .asian = true}).edits, 0);
  EXPECT_EQ(ter("小船，カナ", "小船カナ", {.remove_punctuation = true, .asian = true}).edits, 0);
  EXPECT_EQ(ter("小船，カナ", "小船カナ", {.asian = true}).edits, 1);
}

TEST(Ter, SignsTheScore) {
  EXPECT_EQ(ter("a", "a").signature,
            "nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:plumb." PLUMB_VERSION);
  EXPECT_EQ(
      ter("a", "a", {.normalize = true, .remove_punctuation = true, .asian = true, .case_sensitive = true}).signature,
      "nrefs:1|case:mixed|tok:tercom|norm:yes|punct:no|asian:yes|version:plumb." PLUMB_VERSION);
}

TEST(Ter, RejectsWhatCannotBeScored) {
  EXPECT_THROW(corpus_ter({"a", "b"}, {{"a"}}), Error);
  EXPECT_THROW(corpus_ter({}, {{}}), Error);
  EXPECT_THROW(corpus_ter({"a"}, {}), Error);
}

}  // namespace
}  // namespace plumb
