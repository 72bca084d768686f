// plumb evaluate: from an imported model to results, including resumption after an interruption.
#include <gtest/gtest.h>

#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "support/process.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

using test::Finished;
using test::run_plumb;

class EvaluateVerb : public ::testing::Test {
 protected:
  EvaluateVerb() : golden_(test::source_directory() / "tests" / "golden" / "evaluation") {
    EXPECT_EQ(run_plumb({"import", (golden_ / "gpt2").string(), "--out", path("run"), "-q"}).status, 0);
  }

  [[nodiscard]] std::string path(const std::string& name) const { return (scratch_ / name).string(); }
  [[nodiscard]] std::string items(const std::string& name) const { return (golden_ / name).string(); }

  [[nodiscard]] Finished evaluate(const std::string& tasks, const std::vector<std::string>& options) const {
    return run_plumb(test::with({"evaluate", path("run"), "--tasks", tasks, "-q"}, options));
  }

  const test::TemporaryDirectory scratch_;
  fs::path golden_;
};

TEST_F(EvaluateVerb, WritesResultsAndSamples) {
  const Finished finished = evaluate(items("choices.jsonl") + "," + items("texts.jsonl"),
                                     {"--limit", "5", "--out", path("out"), "--samples", "--json", path("json")});
  ASSERT_EQ(finished.status, 0) << finished.errors;
  const Json json = read_json(path("json"));
  EXPECT_EQ(json, read_json(path("out/results.json")));
  EXPECT_EQ(json["schema"], "plumb.evaluation/2");
  const Json& choices = json["tasks"]["choices"];
  EXPECT_EQ(choices["items"], 5);
  EXPECT_EQ(choices["items_in_file"], 10);
  EXPECT_TRUE(choices["metrics"]["acc"]["standard_error"].is_number());
  EXPECT_EQ(choices["metrics"]["acc"]["interval"].size(), 2U);
  const Json& texts = json["tasks"]["texts"];
  EXPECT_EQ(texts["kind"], "loglikelihood_rolling");
  EXPECT_EQ(texts["metrics"]["bits_per_byte"]["higher_is_better"], false);
  EXPECT_FALSE(texts["metrics"]["bits_per_byte"].contains("standard_error"));
  const Json& category = json["categories"]["own"];
  EXPECT_EQ(category["tasks"], Json::array({"choices"}));
  EXPECT_EQ(category["acc"], choices["metrics"]["acc"]["value"]);

  const std::vector<std::string> lines = read_lines(path("out/samples_choices.jsonl"));
  ASSERT_EQ(lines.size(), 5U);
  const Json sample = Json::parse(lines[0]);
  EXPECT_EQ(sample["arguments"][0], (Json::array({"The baker opened the oven, and", " the bread was brown."})));
  EXPECT_EQ(sample["resps"].size(), 3U);
}

// The model's output depends on the penalty in its generation_config.json, so its answers are requested again.
TEST_F(EvaluateVerb, AnotherRepetitionPenaltyAsksAgain) {
  const std::string tasks = items("answers.jsonl");
  const auto answers = [&] {
    EXPECT_EQ(evaluate(tasks, {"--out", path("out"), "--limit", "4", "--max-tokens", "6"}).status, 0);
    return read_json(path("out/answers/answers.json"));
  };
  const Json plain = answers();
  EXPECT_FALSE(plain["settings"].contains("repetition_penalty"));
  write_json(path("run/generation_config.json"), {{"repetition_penalty", 5}});
  const Json penalized = answers();
  EXPECT_EQ(penalized["settings"]["repetition_penalty"], 5);
  EXPECT_NE(penalized["answers"], plain["answers"]);
}

TEST_F(EvaluateVerb, ContinuesWithTheAnswersThatAreKept) {
  const std::string tasks = items("choices.jsonl");
  ASSERT_EQ(evaluate(tasks, {"--out", path("out")}).status, 0);
  const fs::path file = path("out/answers/choices.json");
  Json answers = read_json(file);
  const Json whole = answers["answers"];
  const Json results = read_json(path("out/results.json"))["tasks"];

  // As after an interruption: missing answers are requested, existing ones are trusted.
  answers["answers"][0] = {-1000.5, false};
  answers["answers"][1] = nullptr;
  write_json(file, answers);
  ASSERT_EQ(evaluate(tasks, {"--out", path("out")}).status, 0);
  const Json continued = read_json(file)["answers"];
  EXPECT_EQ(continued[0], (Json{-1000.5, false}));
  EXPECT_NEAR(continued[1][0].get<double>(), whole[1][0].get<double>(), 1e-5);

  // With other prompts, or a damaged file, everything is requested again.
  std::string other = read_file(tasks);
  write_file_atomic(path("choices.jsonl"), other.replace(other.find("The baker"), 3, "A"));
  ASSERT_EQ(evaluate(path("choices.jsonl"), {"--out", path("out")}).status, 0);
  EXPECT_NE(read_json(file)["answers"][0], continued[0]);
  write_file_atomic(file, "{");
  ASSERT_EQ(evaluate(tasks, {"--out", path("out")}).status, 0);
  EXPECT_EQ(read_json(path("out/results.json"))["tasks"], results);
}

TEST_F(EvaluateVerb, ReadsAFolderOfTransformersAsItIs) {
  const std::string tasks = items("choices.jsonl") + "," + items("answers.jsonl");
  const auto evaluated = [&](const std::string& model) {
    test::succeeded(
        run_plumb({"evaluate", model, "--tasks", tasks, "--max-tokens", "6", "-q", "--out", model + "-out"}));
    return read_json(model + "-out/results.json");
  };
  EXPECT_EQ(run_plumb({"import", items("llama"), "--out", path("llama"), "-q"}).status, 0);
  fs::copy(items("llama"), path("folder"));
  const Json run = evaluated(path("llama")), folder = evaluated(path("folder"));
  EXPECT_EQ(run["tasks"], folder["tasks"]);
  EXPECT_EQ(run["settings"]["max_length"], 64);  // max_position_embeddings
  EXPECT_EQ(folder["settings"]["max_length"], 64);
}

/// Answers are requested again if the tokenizer, the configuration or the weights have changed.
TEST_F(EvaluateVerb, AsksAgainIfTheFolderHasChanged) {
  fs::copy(items("llama"), path("folder"));
  const fs::path file = path("out/answers/choices.json");
  const auto answers = [&] {
    test::succeeded(
        run_plumb({"evaluate", path("folder"), "--tasks", items("choices.jsonl"), "-q", "--out", path("out")}));
    return read_json(file);
  };
  Json kept = answers();
  const Json real = kept["answers"][0];
  const auto keep_another = [&] {
    kept["answers"][0] = {-1000.5, false};
    write_json(file, kept);
  };
  keep_another();
  EXPECT_EQ(answers()["answers"][0], (Json{-1000.5, false})) << "before a change";
  for (const char* name : {"config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"}) {
    keep_another();
    const bool there = fs::exists(path("folder") + "/" + name);
    write_file_atomic(path("folder") + "/" + name, there ? read_file(path("folder") + "/" + name) + "\n" : "{}");
    kept = answers();
    EXPECT_EQ(kept["answers"][0], real) << name;
  }
}

/// As `plumb import` does.
TEST_F(EvaluateVerb, RefusesAFolderWhoseSpecialTokensAreUnknown) {
  fs::copy(items("llama"), path("folder"));
  fs::remove(path("folder/tokenizer.json"));
  write_file_atomic(path("folder/tokenizer.model"), "pieces");
  const Finished finished = run_plumb({"evaluate", path("folder"), "--tasks", items("choices.jsonl"), "-q"});
  EXPECT_NE(finished.status, 0);
  EXPECT_CONTAINS(finished.errors, "a SentencePiece model alone");
}

TEST_F(EvaluateVerb, KeepsAnswersThatAreWritten) {
  const std::string tasks = items("answers.jsonl");
  ASSERT_EQ(evaluate(tasks, {"--max-tokens", "6", "--out", path("out"), "--samples"}).status, 0);
  const Json sample = Json::parse(read_lines(path("out/samples_answers.jsonl"))[0]);
  EXPECT_EQ(sample["arguments"][0][1]["max_gen_toks"], 6);
  EXPECT_EQ(read_json(path("out/results.json"))["tasks"]["answers"]["kind"], "generate_until");
  const fs::path file = path("out/answers/answers.json");
  Json answers = read_json(file);
  EXPECT_EQ(answers["answers"][0], sample["resps"][0][0]);

  // Existing answers are trusted, unless answers may be longer now.
  answers["answers"][0] = "believed";
  write_json(file, answers);
  ASSERT_EQ(evaluate(tasks, {"--max-tokens", "6", "--out", path("out")}).status, 0);
  EXPECT_EQ(read_json(file)["answers"][0], "believed");
  ASSERT_EQ(evaluate(tasks, {"--max-tokens", "7", "--out", path("out")}).status, 0);
  EXPECT_NE(read_json(file)["answers"][0], "believed");
}

TEST_F(EvaluateVerb, SaysWhatIsWrong) {
  const auto fails = [&](const std::string& tasks, const std::vector<std::string>& options,
                         const std::string& message) {
    const Finished finished = evaluate(tasks, options);
    EXPECT_NE(finished.status, 0);
    EXPECT_CONTAINS(finished.errors, message);
  };
  fails("lambada_openai", {}, "unknown evaluation task 'lambada_openai'");
  fails(items("choices.jsonl"), {"--max-length", "49"}, "more than the 48 tokens");
  fails(items("choices.jsonl"), {"--max-length", "2"}, "longer than the 2 that the model can read");
  fails(items("choices.jsonl") + "," + items("choices.jsonl"), {}, "'choices' is named twice");
  fails(items("choices.jsonl"), {"--samples"}, "give their directory with --out");
  fails(items("choices.jsonl"), {"--out", path("run")}, "run");
  fails(items("answers.jsonl"), {}, "answers of up to 256 tokens leave no room for a prompt in the 48");
}

}  // namespace
}  // namespace plumb
