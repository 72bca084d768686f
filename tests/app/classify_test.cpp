// plumb classify, from labeled text and a trained run to labels.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/base/text.h"
#include "support/shared_folder.h"

namespace plumb {
namespace {

using test::Finished;
using test::run_plumb;

class ClassifyVerb : public test::SharedFolder<ClassifyVerb> {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace();
    std::string single;
    std::string pairs;
    for (int i = 0; i < 300; ++i) {
      const bool good = i % 2 == 0;
      const std::string text = fmt::format("the {} was {} {}", i % 3 == 0 ? "film" : "book", i % 5 == 0 ? "so" : "very",
                                           good ? "good" : "bad");
      single += fmt::format("{}\t{}\n", good ? "praise" : "blame", text);
      pairs +=
          fmt::format("{}\t{}\tit was {}\n", i % 4 < 2 ? "same" : "other", text, (i % 4 < 2) == good ? "good" : "bad");
    }
    write_file_atomic(*folder_ / "single.tsv", single);
    write_file_atomic(*folder_ / "pairs.tsv", pairs);
    ASSERT_EQ(prepare("single", {"--vocabulary", "50"}).status, 0);
    ASSERT_EQ(prepare("pairs", {"--vocabulary", "45", "--text", "2", "3"}).status, 0);
    train("single", "run", 150);
    train("single", "other-run", 20);
    train("pairs", "pair-run", 2);
  }

  static Finished prepare(const std::string& name, const std::vector<std::string>& options) {
    const std::string file = path(name + ".tsv");
    return run_plumb(
        test::with({"data", "labels", "--train", file, "--valid", file, "--out", path(name), "-q"}, options));
  }

  static void train(const std::string& data, const std::string& run, int steps) {
    test::succeeded(run_plumb(
        test::with_keys({"train", "--data", path(data), "--out", path(run), "-q"},
                        {"model.kind=encoder", "model.d_model=16", "model.heads=2", "model.feed_forward=32",
                         "model.encoder_layers=1", "train.learning_rate=0.01", "train.warm_up=0", "train.decay_start=1",
                         "train.batch_tokens=256", fmt::format("train.steps={}", steps)})));
  }

  static Finished classify(const std::string& input, const std::string& run, const std::string& options = "") {
    write_file_atomic(*folder_ / "input", input);
    return test::run_plumb_on(fmt::format("classify '{}' -q {}", path(run), options), path("input"));
  }
};

/// The number of positions is unlimited, but the time of attention grows with the square of the length.
TEST_F(ClassifyVerb, AnEncoderReadsAtMost512TokensOfATextForItsVector) {
  std::string text = "good";
  for (int i = 0; i < 700; ++i) text += " bad";
  write_file_atomic(path("long.txt"), text + '\n');
  const auto embed = [&](const std::vector<std::string>& options) {
    return test::succeeded(run_plumb(test::with(
                               {"embed", path("run"), "--text", path("long.txt"), "--out", path("long.npy")}, options)))
        .errors;
  };
  EXPECT_CONTAINS(embed({}), "were truncated to 512 tokens");
  EXPECT_CONTAINS(embed({"--max-tokens", "600"}), "were truncated to 600 tokens");
  EXPECT_LACKS(embed({"--max-tokens", "5000"}), "truncated");
}

TEST_F(ClassifyVerb, ALabelAndItsProbabilityForEveryLine) {
  const Finished finished =
      test::succeeded(classify("the film was very good\nthe book was so bad\n\nthe book was good\n", "run"));
  const std::vector<std::string> lines = split(finished.output, '\n');
  ASSERT_EQ(lines.size(), 5U) << finished.output;
  EXPECT_TRUE(lines[0].starts_with("praise\t0.")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("blame\t0.")) << lines[1];
  EXPECT_TRUE(lines[3].starts_with("praise\t0.")) << lines[3];
  EXPECT_EQ(lines[4], "");
  EXPECT_EQ(classify("the book was so bad\n", "run", "--threads 1").output, lines[1] + "\n");
  EXPECT_EQ(classify("", "run").output, "");
}

// The data allow 256 tokens, the model has fewer positions.
TEST_F(ClassifyVerb, CutsATextToTheModelsPositions) {
  test::succeeded(run_plumb(test::with_keys(
      {"train", "--data", path("single"), "--out", path("short"), "-q"},
      {"model.kind=encoder", "model.d_model=16", "model.heads=2", "model.encoder_layers=1", "train.warm_up=0",
       "model.positions=learned", "model.max_positions=40", "train.decay_start=1", "train.steps=2"})));
  std::string longer = "the film was good";
  for (int i = 0; i < 100; ++i) longer += " bad";
  write_file_atomic(*folder_ / "input", "the film was good\n" + longer + "\n");
  const Finished finished = test::succeeded(test::run_plumb_on("classify '" + path("short") + "'", path("input")));
  EXPECT_EQ(split(finished.output, '\n').size(), 3U) << finished.output;
  EXPECT_CONTAINS(finished.errors, "1 of 2 texts were truncated to 38 tokens");  // besides BOS and EOS
}

TEST_F(ClassifyVerb, WritesJson) {
  const Json json = Json::parse(test::succeeded(classify("the film was very good\nbad\n", "run", "--json -")).output);
  EXPECT_EQ(json["schema"], "plumb.classify/1");
  EXPECT_EQ(json["labels"], (std::vector<std::string>{"blame", "praise"}));
  ASSERT_EQ(json["examples"].size(), 2U);
  for (const Json& example : json["examples"]) {
    const std::vector<double> p = example["probabilities"];
    ASSERT_EQ(p.size(), 2U);
    EXPECT_NEAR(p[0] + p[1], 1, 1e-12);
    EXPECT_EQ(example["probability"], std::max(p[0], p[1]));
    EXPECT_EQ(example["label"], p[0] > p[1] ? "blame" : "praise");
  }
  EXPECT_EQ(json["examples"][1]["text"], "bad");
  EXPECT_FALSE(json["examples"][1].contains("second"));
}

// With equal weights, as Howard & Ruder 2018 average forward and backward models.
TEST_F(ClassifyVerb, SeveralModelsVoteWithTheMeanOfTheirProbabilities) {
  const std::string input = "the film was very good\nthe book was so bad\nbook\n";
  const auto examples = [&](const std::string& run, const std::string& options) {
    const Finished finished = test::succeeded(classify(input, run, options + " --json -"));
    return Json::parse(finished.output);
  };
  const Json first = examples("run", ""), second = examples("other-run", "");
  const Json both = examples("run", path("other-run"));
  ASSERT_EQ(both["mean_of"].size(), 2U);
  EXPECT_EQ(both["mean_of"][1]["run"], path("other-run"));
  EXPECT_FALSE(first.contains("mean_of"));
  for (size_t i = 0; i < 3; ++i) {
    for (size_t label = 0; label < 2; ++label) {
      const double a = first["examples"][i]["probabilities"][label], b = second["examples"][i]["probabilities"][label];
      EXPECT_NEAR(both["examples"][i]["probabilities"][label].get<double>(), (a + b) / 2, 1e-12);
    }
  }
  const Finished other = classify(input, "run", path("pair-run"));
  EXPECT_EQ(other.status, 1);
  EXPECT_CONTAINS(other.errors, "blame, praise");
  EXPECT_CONTAINS(other.errors, "other, same");
}

TEST_F(ClassifyVerb, MeasuresASplit) {
  const Json json = Json::parse(test::succeeded(classify("", "run", "--split valid --json -")).output);
  const std::vector<std::string> lines = split(read_file(*folder_ / "single.tsv"), '\n');
  int right = 0;
  ASSERT_EQ(json["examples"].size(), 300U);
  for (size_t i = 0; i < 300; ++i)
    right += lines[i].starts_with(json["examples"][i]["label"].get<std::string>() + '\t');
  EXPECT_DOUBLE_EQ(json["metrics"]["accuracy"].get<double>(), right / 300.0);
  EXPECT_LE(json["metrics"]["mcc_low"].get<double>(), json["metrics"]["mcc"].get<double>());
  EXPECT_TRUE(classify("", "run", "--split valid").output.starts_with("accuracy\t"));
  EXPECT_EQ(classify("", "run", "--split nowhere").status, 1);
}

TEST_F(ClassifyVerb, APairHasATab) {
  const Finished finished = test::succeeded(classify("the film was good\tit was bad\nx\ty\n", "pair-run", "--json -"));
  const Json examples = Json::parse(finished.output)["examples"];
  EXPECT_EQ(examples[0]["text"], "the film was good");
  EXPECT_EQ(examples[0]["second"], "it was bad");
  const Finished lacks = classify("x\ty\nthe film was good\n", "pair-run");
  EXPECT_EQ(lacks.status, 1);
  EXPECT_CONTAINS(lacks.errors, "standard input:2: expected a pair of sentences, found one\nhint: ");
  EXPECT_EQ(classify("the film\n", "run", "--pair").status, 1);
  EXPECT_EQ(classify("a\tb\n", "run", "--pair").status, 0);
}

TEST_F(ClassifyVerb, RefusesOtherModelsAndOtherData) {
  const Finished other = classify("x\n", "run", "--data " + path("pairs"));
  EXPECT_EQ(other.status, 1);
  EXPECT_CONTAINS(other.errors, "its vocabulary is not the one that");
  EXPECT_EQ(classify("x\n", "single").status, 1);
  const Finished itself =
      run_plumb({"finetune", "--from", path("run"), "--data", path("single"), "--out", path("run"), "-q"});
  EXPECT_EQ(itself.status, 2);
  EXPECT_CONTAINS(itself.errors, "the run to start from");
  // The same numbers of labels and pieces, but different ones.
  std::string reversed;
  for (const std::string& line : read_lines(*folder_ / "single.tsv")) reversed += fmt::format("{} never ever\n", line);
  write_file_atomic(*folder_ / "reversed.tsv", reversed);
  ASSERT_EQ(prepare("reversed", {"--vocabulary", "50"}).status, 0);
  const Finished foreign = classify("x\n", "run", "--data " + path("reversed"));
  EXPECT_EQ(foreign.status, 1);
  EXPECT_CONTAINS(foreign.errors, "its vocabulary is not the one that");
  ASSERT_EQ(prepare("reversed", {"--tokenizer-from", path("single"), "--replace"}).status, 0);
  EXPECT_EQ(classify("x\n", "run", "--data " + path("reversed")).status, 0);
  EXPECT_EQ(classify("x\xFF\n", "run").status, 1);
}

}  // namespace
}  // namespace plumb
