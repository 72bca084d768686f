// What makes scores mean less than they seem to: bytes that the tokenizer loses, choices of the same tokens, ties.
#include <gtest/gtest.h>

#include "decode/random_model.h"
#include "plumb/evaluate/evaluate.h"
#include "plumb/evaluate/results.h"
#include "support/errors.h"
#include "support/paths.h"
#include "support/small_tokenizer.h"

namespace plumb {
namespace {

TEST(Losses, BytesThatTokensDoNotGiveBack) {
  const TextEncoder of_lines(test::small_tokenizer(), EvaluatedText::lines);
  EXPECT_EQ(of_lines.lost_bytes(""), 0);
  EXPECT_EQ(of_lines.lost_bytes("the cat sat\non the mat"), 0);
  EXPECT_EQ(of_lines.lost_bytes("天地玄黃"), 12);
  EXPECT_EQ(of_lines.lost_bytes("the 天 cat"), 3);
  EXPECT_EQ(of_lines.lost_bytes("the     cat"), 4);
  EXPECT_EQ(of_lines.lost_bytes("the\tcat"), 1);       // becomes a space
  EXPECT_EQ(of_lines.lost_bytes("\n\nthe cat\n"), 3);  // EOS stands between lines that have tokens
  const TextEncoder of_bytes(Tokenizer::from_file(test::source_directory() / "tests/golden/evaluation/gpt2"),
                             EvaluatedText::whole);
  EXPECT_EQ(of_bytes.lost_bytes(" Über den Wolken,\n\n\tzwei  Zeilen: 小船今天驶向港口。\n"), 0);
}

TaskResult answered(EvaluationTask task) {
  const Tokenizer tokenizer = test::small_tokenizer();
  test::RandomModel model(7, tokenizer.vocabulary());
  EvaluateOptions options;
  options.max_length = 64;
  options.resampling.samples = 0;
  return evaluate_task(model, TextEncoder(tokenizer, EvaluatedText::lines), std::move(task), options);
}

TEST(Losses, AreNamedBesideTheNumbers) {
  const TaskResult choices = answered({.name = "choices",
                                       .category = "own",
                                       .metrics = {"acc", "acc_norm", "acc_bytes"},
                                       .items = {{.context = "the cat", .choices = {"天 cat", "地 cat"}},
                                                 {.context = "the cat", .choices = {"sat", "sees"}}}});
  const TaskResult texts = answered({.name = "texts",
                                     .category = "own",
                                     .kind = RequestKind::rolling,
                                     .metrics = {"bits_per_byte"},
                                     .items = {{.choices = {"天地"}, .words = 1, .bytes = 6}}});
  const Json json = evaluation_json({choices, texts})["tasks"];
  EXPECT_EQ(json["choices"]["same_tokens"], 1);
  EXPECT_EQ(json["choices"]["bytes"], 8 + 8 + 4 + 5);
  EXPECT_EQ(json["choices"]["lost_bytes"], 6);
  for (const char* metric : {"acc", "acc_norm", "acc_bytes"})
    EXPECT_EQ(json["choices"]["metrics"][metric]["ties"], 1) << metric;
  EXPECT_EQ(json["texts"]["lost_bytes"], 6);
  const TextEncoder encoder(test::small_tokenizer(), EvaluatedText::lines);
  EXPECT_EQ(json["texts"]["tokens"], encoder.windows("天地", 64).front().continuation.size());
  EXPECT_FALSE(json["texts"].contains("same_tokens"));
  EXPECT_FALSE(json["texts"]["metrics"]["bits_per_byte"].contains("ties"));
  const std::string text = evaluation_text({choices, texts});
  EXPECT_CONTAINS(text, "choices: 6 of 25 bytes are unknown to the tokenizer or lost");
  EXPECT_CONTAINS(text, "choices: 1 of 2 items have choices of the same tokens");
  EXPECT_CONTAINS(text, "choices: 1 of 2 items tie in acc_norm, where the first one counts");
  EXPECT_CONTAINS(text, "texts: 6 of 6 bytes are unknown to the tokenizer or lost");
}

// As in lm-evaluation-harness, the first of the best choices counts.
TEST(Losses, TiesAreThoseOfTheBestChoices) {
  const std::vector<EvaluationItem> items(3, {.context = "x", .choices = {"a", "b", "cc"}, .gold = 0});
  const std::vector<std::vector<Answer>> answers = {{{-2}, {-2}, {-3}}, {{-3}, {-2}, {-3}}, {{-5}, {-2}, {-4}}};
  const MetricResult plain = measure("acc", items, answers), by_bytes = measure("acc_bytes", items, answers);
  EXPECT_EQ(plain.ties, 1);
  EXPECT_NEAR(plain.score, 1 / 3.0, 1e-15);
  EXPECT_EQ(by_bytes.ties, 1);  // -2/1 and -4/2 in the last
  EXPECT_FALSE(measure("perplexity", items, answers).ties);
  EXPECT_FALSE(measure("acc", {{.context = "x", .choices = {"a"}}}, {{{-2, true}}}).ties);
}

}  // namespace
}  // namespace plumb
