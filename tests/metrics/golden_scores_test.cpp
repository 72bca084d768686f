// 500 German sentences scored by sacreBLEU 2: all numbers agree to 1e-9.
#include <gtest/gtest.h>

#include <filesystem>

#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/metrics/bleu.h"
#include "plumb/metrics/chrf.h"
#include "support/paths.h"

namespace plumb {
namespace {

constexpr double kTolerance = 1e-9;

class GoldenScores : public ::testing::Test {
 protected:
  void SetUp() override {
    PLUMB_REQUIRE_SHARED("golden/bleu/bleu.json");
    const std::filesystem::path folder = test::shared_directory() / "golden" / "bleu";
    golden_ = read_json(folder / "bleu.json").at("system.txt");
    hypotheses_ = read_lines(folder / "system.txt");
    references_ = {read_lines(folder / "reference.txt")};
  }

  Json golden_;
  std::vector<std::string> hypotheses_;
  std::vector<std::vector<std::string>> references_;
};

TEST_F(GoldenScores, BleuWithEachTokenizer) {
  for (const std::string tokenizer : {"13a", "intl", "none", "char"}) {
    SCOPED_TRACE(tokenizer);
    const Json& expected = golden_.at("bleu_" + tokenizer);
    const BleuScore score = corpus_bleu(hypotheses_, references_, {.tokenizer = tokenizer});
    EXPECT_NEAR(score.score, expected.at("score").get<double>(), kTolerance);
    EXPECT_NEAR(score.brevity_penalty, expected.at("bp").get<double>(), kTolerance);
    EXPECT_EQ(score.system_length, expected.at("sys_len").get<int64_t>());
    EXPECT_EQ(score.reference_length, expected.at("ref_len").get<int64_t>());
    for (size_t n = 0; n < 4; ++n)
      EXPECT_NEAR(score.precisions[n], expected.at("precisions").at(n).get<double>(), kTolerance);
  }
}

TEST_F(GoldenScores, BleuOfLowercasedText) {
  EXPECT_NEAR(corpus_bleu(hypotheses_, references_, {.lowercase = true}).score, golden_.at("bleu_13a_lc").get<double>(),
              kTolerance);
}

TEST_F(GoldenScores, Chrf) {
  EXPECT_NEAR(corpus_chrf(hypotheses_, references_).score, golden_.at("chrf2").get<double>(), kTolerance);
  EXPECT_NEAR(corpus_chrf(hypotheses_, references_, {.word_order = 2}).score, golden_.at("chrf2++").get<double>(),
              kTolerance);
}

}  // namespace
}  // namespace plumb
