// plumb translate, from a data directory and a trained run to lines of text.
#include <gtest/gtest.h>

#include "plumb/base/files.h"
#include "plumb/base/text.h"
#include "support/process.h"

namespace plumb {
namespace {

using test::Finished;
using test::Process;
using test::run_plumb;

class TranslateVerb : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TemporaryDirectory;
    ASSERT_EQ(run_plumb({"data", "synthesize", "--pairs", "400", "--valid-size", "50", "--test-size", "50",
                         "--vocabulary", "400", "--out", data()})
                  .status,
              0);
    const Finished trained = run_plumb({"train",
                                        "--data",
                                        data(),
                                        "--out",
                                        run(),
                                        "--set",
                                        "model.d_model=16",
                                        "--set",
                                        "model.heads=2",
                                        "--set",
                                        "model.feed_forward=16",
                                        "--set",
                                        "model.encoder_layers=1",
                                        "--set",
                                        "model.decoder_layers=1",
                                        "--set",
                                        "train.steps=4",
                                        "--set",
                                        "train.checkpoint_every=2",
                                        "--set",
                                        "task.translation.beam=0",
                                        "-q"});
    ASSERT_EQ(trained.status, 0) << trained.errors;
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string data() { return (*folder_ / "data").string(); }
  static std::string run() { return (*folder_ / "run").string(); }

  static Finished translate(const std::string& input, const std::string& model, const std::string& options = "") {
    write_file_atomic(*folder_ / "input", input);
    const std::string command = "'" PLUMB_BINARY "' translate '" + model + "' " + options + " < '";
    return Process("/bin/sh", {"-c", command + (*folder_ / "input").string() + "'"}).wait();
  }

  static inline test::TemporaryDirectory* folder_ = nullptr;
};

TEST_F(TranslateVerb, OneLineForEachInOrder) {
  const Finished all =
      translate("Ein Hund schläft.\n\nDie Katze sieht den Hund.\r\nEin Mann läuft", run(), "--beam 2 -q");
  ASSERT_EQ(all.status, 0) << all.errors;
  const std::vector<std::string> lines = split(all.output, '\n');
  ASSERT_EQ(lines.size(), 5U) << all.output;  // the last piece follows the final line end
  EXPECT_EQ(lines[1], "");
  EXPECT_EQ(lines[4], "");
  EXPECT_EQ(translate("Die Katze sieht den Hund.\n", run(), "--beam 2 --threads 1 -q").output, lines[2] + "\n");
  EXPECT_EQ(translate("", run(), "-q").output, "");
}

TEST_F(TranslateVerb, TakesTheLatestCheckpointOrTheOneNamed) {
  const std::string input = "Ein Hund schläft.\nDie Katze sieht den Hund.\n";
  const std::string latest = translate(input, run(), "-q").output;
  EXPECT_EQ(translate(input, run() + "/checkpoints/step-000004/", "-q --data " + data()).output, latest);
  EXPECT_EQ(translate(input, run() + "/checkpoints/step-000002", "-q").status, 0);
}

TEST_F(TranslateVerb, SaysHowFastItWas) {
  const Finished finished = translate("Ein Hund schläft.\nEin Mann läuft.\n", run(), "-v --beam 1");
  EXPECT_EQ(finished.status, 0);
  EXPECT_NE(finished.errors.find("2 sentences, "), std::string::npos) << finished.errors;
  EXPECT_NE(finished.errors.find("tokens/s"), std::string::npos) << finished.errors;
}

TEST_F(TranslateVerb, NamesTheLineThatIsNoUtf8) {
  const Finished finished = translate("Ein Hund\nein\xFF\n", run());
  EXPECT_EQ(finished.status, 1);
  EXPECT_EQ(finished.output, "");
  EXPECT_NE(finished.errors.find("standard input:2: not valid UTF-8"), std::string::npos) << finished.errors;
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
