// BLEU by hand, and what it refuses. sacrebleu_test.cpp compares every option with sacreBLEU.
#include "plumb/metrics/bleu.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plumb/base/error.h"
#include "support/errors.h"

namespace plumb {
namespace {

using Lines = std::vector<std::string>;

BleuScore bleu(const Lines& hypotheses, const std::vector<Lines>& references, const std::string& smoothing = "exp") {
  return corpus_bleu(hypotheses, references, {.tokenizer = "none", .smoothing = smoothing});
}

// 100 · BP · (p₁ p₂ p₃ p₄)^¼
double geometric(double p1, double p2, double p3, double p4, double brevity_penalty = 1) {
  return 100 * brevity_penalty * std::pow(p1 * p2 * p3 * p4, 0.25);
}

TEST(Bleu, OfTheReferenceItselfIs100) {
  const BleuScore score = bleu({"a b c d e"}, {{"a b c d e"}});
  EXPECT_NEAR(score.score, 100, 1e-12);
  EXPECT_EQ(score.precisions, (std::vector<double>{100, 100, 100, 100}));
  EXPECT_EQ(score.brevity_penalty, 1);
  EXPECT_EQ(score.system_length, 5);
  EXPECT_EQ(score.reference_length, 5);
}

TEST(Bleu, CountsMatchesOfEachOrder) {
  // Words a b c d x f: 5 of 6 match; bigrams ab bc cd: 3 of 5; trigrams abc bcd: 2 of 4; abcd: 1 of 3.
  const BleuScore score = bleu({"a b c d x f"}, {{"a b c d e f"}});
  EXPECT_NEAR(score.score, geometric(5 / 6.0, 3 / 5.0, 2 / 4.0, 1 / 3.0), 1e-12);
  EXPECT_NEAR(score.precisions[2], 50, 1e-12);
}

TEST(Bleu, TakesTheClosestReferenceLength) {
  EXPECT_EQ(bleu({"a b c d e"}, {{"a b"}, {"a b c d e f"}}).reference_length, 6);
  EXPECT_EQ(bleu({"a b c d e"}, {{"a b c d"}, {"a b c d e f g"}}).reference_length, 4);
  // Both differ by one word: the shorter counts, in either order.
  EXPECT_EQ(bleu({"a b c d e"}, {{"a b c d e f"}, {"a b c d"}}).reference_length, 4);
  EXPECT_EQ(bleu({"a b c d e"}, {{"a b c d"}, {"a b c d e f"}}).reference_length, 4);
  // Sentence by sentence, not file by file.
  EXPECT_EQ(bleu({"a b", "a b c d"}, {{"a b", "a"}, {"a b c d e f", "a b c d"}}).reference_length, 6);
}

TEST(Bleu, OfNoMatchIsZeroWithEverySmoothing) {
  for (const char* smoothing : {"exp", "floor", "add-k", "none"}) {
    const BleuScore score = bleu({"x y z v w"}, {{"a b c d e"}}, smoothing);
    EXPECT_EQ(score.score, 0) << smoothing;
    EXPECT_EQ(score.precisions, std::vector<double>(4)) << smoothing;
  }
  // And where an order has none, if nothing is put in its place.
  EXPECT_EQ(corpus_bleu({"a b x c d"}, {{"a b c d"}},
                        {.tokenizer = "none", .smoothing = "floor", .smoothing_value = 0})
                .score,
            0);
}

TEST(Bleu, AcceptsEmptyHypothesesAndReferences) {
  const BleuScore nothing = bleu({""}, {{"a b c d"}});
  EXPECT_EQ(nothing.score, 0);
  EXPECT_EQ(nothing.brevity_penalty, 0);
  EXPECT_EQ(nothing.system_length, 0);
  // An empty line costs only length: 4 words against 8.
  EXPECT_NEAR(bleu({"a b c d", ""}, {{"a b c d", "e f g h"}}).score, geometric(1, 1, 1, 1, std::exp(1 - 8 / 4.0)),
              1e-12);
  EXPECT_NEAR(bleu({"a b c d"}, {{""}}).score, 0, 0);
  EXPECT_EQ(bleu({""}, {{""}}).score, 0);
}

TEST(Bleu, LowercasesWhenAsked) {
  BleuOptions options;
  EXPECT_EQ(corpus_bleu({"A B Ü ΟΔΟΣ"}, {{"a b ü οδος"}}, options).score, 0);
  options.lowercase = true;
  EXPECT_NEAR(corpus_bleu({"A B Ü ΟΔΟΣ"}, {{"a b ü οδος"}}, options).score, 100, 1e-12);  // with the final sigma
}

TEST(Bleu, TokenizesWith13aByDefault) {
  EXPECT_EQ(corpus_bleu({"Yes, 1,5."}, {{"Yes, 1,5."}}).system_length, 4);
  EXPECT_EQ(corpus_bleu({"Yes, 1,5."}, {{"Yes, 1,5."}}, {.tokenizer = "char"}).system_length, 8);
  EXPECT_EQ(corpus_bleu({"Yes, 1,5."}, {{"Yes, 1,5."}}, {.tokenizer = "intl"}).system_length, 3);
  EXPECT_EQ(corpus_bleu({"Yes, 1,5."}, {{"Yes, 1,5."}}, {.tokenizer = "none"}).system_length, 2);
}

TEST(Bleu, SignsTheScore) {
  EXPECT_EQ(corpus_bleu({"a"}, {{"a"}}).signature,
            "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:plumb." PLUMB_VERSION);
  EXPECT_EQ(
      corpus_bleu({"a"}, {{"a"}, {"b"}}, {.tokenizer = "intl", .lowercase = true, .smoothing = "floor"}).signature,
      "nrefs:2|case:lc|eff:no|tok:intl|smooth:floor[0.10]|version:plumb." PLUMB_VERSION);
  EXPECT_EQ(corpus_bleu({"a"}, {{"a"}}, {.smoothing = "add-k"}).signature,
            "nrefs:1|case:mixed|eff:no|tok:13a|smooth:add-k[1.00]|version:plumb." PLUMB_VERSION);
}

TEST(Bleu, RejectsWhatCannotBeScored) {
  EXPECT_EQ(test::message_of([&] {
              corpus_bleu({"a", "b"}, {{"a", "b"}, {"a", "b", "c"}});
            }),
            "2 hypotheses, but reference 2 has 3 sentences");
  EXPECT_THROW(corpus_bleu({}, {{}}), Error);
  EXPECT_THROW(corpus_bleu({"a"}, {}), Error);
  EXPECT_THROW(corpus_bleu({"a"}, {{"a"}}, {.tokenizer = "13b"}), Error);
  EXPECT_THROW(corpus_bleu({"a"}, {{"a"}}, {.smoothing = "expo"}), Error);
  EXPECT_THROW(corpus_bleu({"a"}, {{"a"}}, {.smoothing = "exp", .smoothing_value = 1}), Error);
  EXPECT_THROW(corpus_bleu({"a"}, {{"a"}}, {.smoothing = "floor", .smoothing_value = -1}), Error);
  EXPECT_THROW(corpus_bleu({"a"}, {{"a"}}, {.order = 0}), Error);
  EXPECT_THROW(bleu_of_counts(std::vector<int64_t>(10), {.order = 3}), Error);
}

}  // namespace
}  // namespace plumb
