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

double chrf_of(const std::vector<std::string>& hypotheses, const std::vector<std::vector<std::string>>& references,
               const ChrfOptions& options = {}) {
  const CorpusMetric metric = chrf_metric(options);
  return metric.score(count_sentences(metric, hypotheses, references).sum());
}

TEST(Chrf, OfTheReferenceItselfIs100) {
  EXPECT_NEAR(chrf_of({"ein Satz"}, {{"ein Satz"}}), 100, 1e-12);
  EXPECT_NEAR(chrf_of({"ein Satz"}, {{"ein Satz"}}, {.word_order = 2}), 100, 1e-12);
}

TEST(Chrf, AveragesPrecisionAndRecallOverTheOrders) {
  // "abcd" against "abcxyz", orders 1 and 2: common a b c and ab bc; the hypothesis has 4 and 3, the reference 6 and 5.
  const double precision = (3 / 4.0 + 2 / 3.0) / 2;
  const double recall = (3 / 6.0 + 2 / 5.0) / 2;
  EXPECT_NEAR(chrf_of({"abcd"}, {{"abcxyz"}}, {.character_order = 2}), f_score(precision, recall), 1e-12);
  EXPECT_NEAR(chrf_of({"abcd"}, {{"abcxyz"}}, {.character_order = 2, .beta = 1}), f_score(precision, recall, 1), 1e-12);
}

TEST(Chrf, LeavesOutOrdersThatASideDoesNotReach) {
  // "ab" has orders 1 and 2 only, and both match in full.
  EXPECT_NEAR(chrf_of({"ab"}, {{"ab"}}), 100, 1e-12);
  // "ab" against "abc": orders 1 and 2; the trigram of the reference does not count against recall.
  EXPECT_NEAR(chrf_of({"ab"}, {{"abc"}}), f_score(1, (2 / 3.0 + 1 / 2.0) / 2), 1e-12);
}

TEST(Chrf, DropsHypothesisNgramsOfASentenceWhoseReferenceHasNone) {
  // Order 2 of the second sentence: the reference "x" has no bigram, so those of "xyz" are not counted. Order 1: common
  // 2 + 1, hypothesis 2 + 3, reference 2 + 1. Order 2: common 1, hypothesis 1 (not 3), reference 1.
  EXPECT_NEAR(chrf_of({"ab", "xyz"}, {{"ab", "x"}}, {.character_order = 2}), f_score((3 / 5.0 + 1) / 2, 1), 1e-12);
}

TEST(Chrf, DoesNotCountWhiteSpaceAndCountsCodePoints) {
  EXPECT_NEAR(chrf_of({"a b\u00A0c"}, {{"abc"}}), 100, 1e-12);
  // ü and ö share a byte in UTF-8 but are different characters.
  EXPECT_NEAR(chrf_of({"aü"}, {{"aö"}}, {.character_order = 1}), f_score(0.5, 0.5), 1e-12);
}

TEST(Chrf, CountsWordsWithPunctuationCutOff) {
  // Words only. "Hi, you." → Hi , you . against "Hi you" → 2 common of 4 and 2.
  EXPECT_NEAR(chrf_of({"Hi, you."}, {{"Hi you"}}, {.character_order = 0, .word_order = 1}), f_score(2 / 4.0, 1), 1e-12);
  // One mark per word, the last before the first: "(so)" → "(so" ")"; "(so" → "(" "so"; "!" stays.
  EXPECT_NEAR(chrf_of({"(so)"}, {{"(so"}}, {.character_order = 0, .word_order = 1}), 0, 1e-12);
  EXPECT_NEAR(chrf_of({"(so"}, {{"( so"}}, {.character_order = 0, .word_order = 2}), 100, 1e-12);
  EXPECT_NEAR(chrf_of({"so!!"}, {{"so! !"}}, {.character_order = 0, .word_order = 1}), f_score(1 / 2.0, 1 / 3.0),
              1e-12);
  // Marks outside ASCII stay with the word.
  EXPECT_NEAR(chrf_of({"so…"}, {{"so"}}, {.character_order = 0, .word_order = 1}), 0, 1e-12);
}

TEST(Chrf, OfNothingInCommonIsZero) {
  EXPECT_EQ(chrf_of({"abc"}, {{"xyz"}}), 0);
  EXPECT_EQ(chrf_of({""}, {{"xyz"}}), 0);
  EXPECT_EQ(chrf_of({"abc"}, {{""}}), 0);
  EXPECT_EQ(chrf_of({""}, {{""}}, {.word_order = 2}), 0);
}

TEST(Chrf, SignsTheScore) {
  const CorpusMetric plain = chrf_metric();
  EXPECT_EQ(plain.name, "chrF2");
  EXPECT_EQ(metric_signature(plain, 1), "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:plumb." PLUMB_VERSION);
  const CorpusMetric plus_plus = chrf_metric({.word_order = 2, .lowercase = true});
  EXPECT_EQ(plus_plus.name, "chrF2++");
  EXPECT_EQ(metric_signature(plus_plus, 2), "nrefs:2|case:lc|eff:yes|nc:6|nw:2|space:no|version:plumb." PLUMB_VERSION);
}

TEST(Chrf, RejectsWhatCannotBeScored) {
  EXPECT_THROW(chrf_of({"a", "b"}, {{"a"}}), Error);
  EXPECT_THROW(chrf_of({}, {{}}), Error);
  EXPECT_THROW(chrf_of({"a"}, {}), Error);
  EXPECT_THROW(chrf_of({"a"}, {{"a"}}, {.character_order = 0}), Error);
  EXPECT_THROW(chrf_of({"a"}, {{"a"}}, {.word_order = -1}), Error);
  EXPECT_THROW(chrf_of({"a"}, {{"a"}}, {.beta = 0}), Error);
}

}  // namespace
}  // namespace plumb
