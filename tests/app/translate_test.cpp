// plumb translate, from a data directory and a trained run to lines of text.
#include <gtest/gtest.h>

#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "plumb/base/text.h"
#include "support/shared_folder.h"

namespace plumb {
namespace {

using test::Finished;
using test::run_plumb;

class TranslateVerb : public test::SharedFolder<TranslateVerb> {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace();
    ASSERT_EQ(run_plumb({"data", "synthesize", "--pairs", "400", "--valid-size", "50", "--test-size", "50",
                         "--vocabulary", "400", "--out", data()})
                  .status,
              0);
    test::succeeded(run_plumb(test::with_keys(
        {"train", "--data", data(), "--out", run(), "-q"},
        {"model.d_model=16", "model.heads=2", "model.feed_forward=16", "model.encoder_layers=1",
         "model.decoder_layers=1", "train.steps=4", "train.checkpoint_every=2", "task.translation.beam=0"})));
  }

  static std::string data() { return path("data"); }
  static std::string run() { return path("run"); }

  static Finished translate(const std::string& input, const std::string& model, const std::string& options = "") {
    write_file_atomic(*folder_ / "input", input);
    return test::run_plumb_on("translate '" + model + "' " + options, path("input"));
  }
};

TEST_F(TranslateVerb, OneLineForEachInOrder) {
  const Finished all = test::succeeded(
      translate("Ein Hund schläft.\n\nDie Katze sieht den Hund.\r\nEin Mann läuft", run(), "--beam 2 -q"));
  const std::vector<std::string> lines = split(all.output, '\n');
  ASSERT_EQ(lines.size(), 5U) << all.output;  // the last piece follows the final line end
  EXPECT_EQ(lines[1], "");
  EXPECT_EQ(lines[4], "");
  EXPECT_EQ(translate("Die Katze sieht den Hund.\n", run(), "--beam 2 --threads 1 -q").output, lines[2] + "\n");
  EXPECT_EQ(translate("", run(), "-q").output, "");
}

TEST_F(TranslateVerb, ReadsAndWritesJson) {
  write_file_atomic(path("texts.jsonl"), "\"Ein Hund schläft.\"\n\"Die Katze\\nsieht den Hund.\"\n");
  const std::vector<std::string> command = {"translate", run(), "--text", path("texts.jsonl"), "--json", "-", "-q"};
  const Json found = Json::parse(test::succeeded(run_plumb(command)).output);
  EXPECT_EQ(found["schema"], "plumb.translate/1");
  EXPECT_EQ(found["translations"].size(), 2U);
  EXPECT_EQ(found["translations"][0].get<std::string>() + "\n", translate("Ein Hund schläft.\n", run(), "-q").output);
  write_file_atomic(path("texts.jsonl"), "\"Ein Hund\"\nEin Mann\n");
  EXPECT_CONTAINS(run_plumb(command).errors, "texts.jsonl:2: is not a JSON string\nhint: ");
}

TEST_F(TranslateVerb, TheLossOfASplitIsThatOfTheTask) {
  const auto evaluate = [](const std::vector<std::string>& options) {
    return run_plumb(test::with({"evaluate", run(), "-q"}, options));
  };
  const Json found = Json::parse(test::succeeded(evaluate({"--split", "valid", "--json", "-"})).output);
  EXPECT_GT(found["metrics"]["loss"].get<double>(), 0);
  EXPECT_EQ(found["split"], "valid");
  EXPECT_EQ(Json::parse(evaluate({"--split", "valid", "--tokenizer", data(), "--json", "-"}).output)["metrics"],
            found["metrics"]);
  EXPECT_EQ(evaluate({}).status, 2);
  EXPECT_EQ(evaluate({"--split", "nothing"}).status, 1);
}

TEST_F(TranslateVerb, TakesTheLatestCheckpointOrTheOneNamed) {
  const std::string input = "Ein Hund schläft.\nDie Katze sieht den Hund.\n";
  const std::string latest = translate(input, run(), "-q").output;
  EXPECT_EQ(translate(input, run() + "/checkpoints/step-000004/", "-q --data " + data()).output, latest);
  EXPECT_EQ(translate(input, run() + "/checkpoints/step-000002", "-q").status, 0);
}

TEST_F(TranslateVerb, SaysHowFastItWas) {
  const Finished finished = test::succeeded(translate("Ein Hund schläft.\nEin Mann läuft.\n", run(), "-v --beam 1"));
  EXPECT_CONTAINS(finished.errors, "2 sentences, ");
  EXPECT_CONTAINS(finished.errors, "tokens/s");
}

TEST_F(TranslateVerb, NamesTheLineThatIsNoUtf8) {
  const Finished finished = translate("Ein Hund\nein\xFF\n", run());
  EXPECT_EQ(finished.status, 1);
  EXPECT_EQ(finished.output, "");
  EXPECT_CONTAINS(finished.errors, "standard input:2: not valid UTF-8");
}

TEST_F(TranslateVerb, RefusesWhatIsNoRun) {
  for (const std::string& wrong : {run() + "/none", data(), run() + "/config.toml"}) {
    const Finished finished = translate("Hund\n", wrong);
    EXPECT_EQ(finished.status, 1) << wrong;
    EXPECT_TRUE(finished.errors.starts_with("plumb: error: ")) << finished.errors;
  }
  for (const std::string wrong : {"--beam 0", "--beam 4611686018427387904", "--batch-tokens 4611686018427387904"})
    EXPECT_EQ(translate("Hund\n", run(), wrong).status, 2) << wrong;
}

}  // namespace
}  // namespace plumb
