// chrF by hand, and what it refuses. sacrebleu_test.cpp compares every option with sacreBLEU.
#include "plumb/metrics/chrf.h"

#include <gtest/gtest.h>

#include "plumb/base/error.h"

namespace plumb {
namespace {

// 100 · (1 + β²) P R / (β² P + R)
double f_score(double precision, double recall, double beta = 2) {
  return 100 * (1 + beta * beta) * precision * recall / (beta * beta * precision + recall);
}

TEST(Chrf, OfTheReferenceItselfIs100) {
  EXPECT_NEAR(corpus_chrf({"ein Satz"}, {{"ein Satz"}}).score, 100, 1e-12);
  EXPECT_NEAR(corpus_chrf({"ein Satz"}, {{"ein Satz"}}, {.word_order = 2}).score, 100, 1e-12);
}

TEST(Chrf, AveragesPrecisionAndRecallOverTheOrders) {
  // "abcd" against "abcxyz", orders 1 and 2: common a b c and ab bc; the hypothesis has 4 and 3, the reference 6 and 5.
  const double precision = (3 / 4.0 + 2 / 3.0) / 2;
  const double recall = (3 / 6.0 + 2 / 5.0) / 2;
  EXPECT_NEAR(corpus_chrf({"abcd"}, {{"abcxyz"}}, {.character_order = 2}).score, f_score(precision, recall), 1e-12);
  EXPECT_NEAR(corpus_chrf({"abcd"}, {{"abcxyz"}}, {.character_order = 2, .beta = 1}).score,
              f_score(precision, recall, 1), 1e-12);
}

TEST(Chrf, LeavesOutOrdersThatASideDoesNotReach) {
  // "ab" has orders 1 and 2 only, and both match in full.
  EXPECT_NEAR(corpus_chrf({"ab"}, {{"ab"}}).score, 100, 1e-12);
  // "ab" against "abc": orders 1 and 2; the trigram of the reference does not count against recall.
  EXPECT_NEAR(corpus_chrf({"ab"}, {{"abc"}}).score, f_score(1, (2 / 3.0 + 1 / 2.0) / 2), 1e-12);
}

TEST(Chrf, DropsHypothesisNgramsOfASentenceWhoseReferenceHasNone) {
  // Order 2 of the second sentence: the reference "x" has no bigram, so those of "xyz" are not counted. Order 1: common
  // 2 + 1, hypothesis 2 + 3, reference 2 + 1. Order 2: common 1, hypothesis 1 (not 3), reference 1.
  EXPECT_NEAR(corpus_chrf({"ab", "xyz"}, {{"ab", "x"}}, {.character_order = 2}).score, f_score((3 / 5.0 + 1) / 2, 1),
              1e-12);
}

TEST(Chrf, DoesNotCountWhiteSpaceAndCountsCodePoints) {
  EXPECT_NEAR(corpus_chrf({"a b\u00A0c"}, {{"abc"}}).score, 100, 1e-12);
  // ü and ö share a byte in UTF-8 but are different characters.
  EXPECT_NEAR(corpus_chrf({"aü"}, {{"aö"}}, {.character_order = 1}).score, f_score(0.5, 0.5), 1e-12);
}

TEST(Chrf, CountsWordsWithPunctuationCutOff) {
  // Words only. "Hi, you." → Hi , you . against "Hi you" → 2 common of 4 and 2.
  EXPECT_NEAR(corpus_chrf({"Hi, you."}, {{"Hi you"}}, {.character_order = 0, .word_order = 1}).score,
              f_score(2 / 4.0, 1), 1e-12);
  // One mark per word, the last before the first: "(so)" → "(so" ")"; "(so" → "(" "so"; "!" stays.
  EXPECT_NEAR(corpus_chrf({"(so)"}, {{"(so"}}, {.character_order = 0, .word_order = 1}).score, 0, 1e-12);
  EXPECT_NEAR(corpus_chrf({"(so"}, {{"( so"}}, {.character_order = 0, .word_order = 2}).score, 100, 1e-12);
  EXPECT_NEAR(corpus_chrf({"so!!"}, {{"so! !"}}, {.character_order = 0, .word_order = 1}).score,
              f_score(1 / 2.0, 1 / 3.0), 1e-12);
  // Marks outside ASCII stay with the word.
  EXPECT_NEAR(corpus_chrf({"so…"}, {{"so"}}, {.character_order = 0, .word_order = 1}).score, 0, 1e-12);
}

TEST(Chrf, OfNothingInCommonIsZero) {
  EXPECT_EQ(corpus_chrf({"abc"}, {{"xyz"}}).score, 0);
  EXPECT_EQ(corpus_chrf({""}, {{"xyz"}}).score, 0);
  EXPECT_EQ(corpus_chrf({"abc"}, {{""}}).score, 0);
  EXPECT_EQ(corpus_chrf({""}, {{""}}, {.word_order = 2}).score, 0);
}

TEST(Chrf, SignsTheScore) {
  const ChrfScore plain = corpus_chrf({"a"}, {{"a"}});
  EXPECT_EQ(plain.name, "chrF2");
  EXPECT_EQ(plain.signature, "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:plumb." PLUMB_VERSION);
  const ChrfScore plus_plus = corpus_chrf({"a"}, {{"a"}, {"b"}}, {.word_order = 2, .lowercase = true});
  EXPECT_EQ(plus_plus.name, "chrF2++");
  EXPECT_EQ(plus_plus.signature, "nrefs:2|case:lc|eff:yes|nc:6|nw:2|space:no|version:plumb." PLUMB_VERSION);
}

TEST(Chrf, RejectsWhatCannotBeScored) {
  EXPECT_THROW(corpus_chrf({"a", "b"}, {{"a"}}), Error);
  EXPECT_THROW(corpus_chrf({}, {{}}), Error);
  EXPECT_THROW(corpus_chrf({"a"}, {}), Error);
  EXPECT_THROW(corpus_chrf({"a"}, {{"a"}}, {.character_order = 0}), Error);
  EXPECT_THROW(corpus_chrf({"a"}, {{"a"}}, {.word_order = -1}), Error);
  EXPECT_THROW(corpus_chrf({"a"}, {{"a"}}, {.beta = 0}), Error);
}

}  // namespace
}  // namespace plumb
