// plumb check as people and launch scripts use it.
#include <gtest/gtest.h>

#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "support/shared_folder.h"

namespace plumb {
namespace {

using test::Finished;
using test::run_plumb;

class CheckVerb : public test::SharedFolder<CheckVerb> {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace();
    ASSERT_EQ(
        run_plumb({"data", "synthesize", "--pairs", "1000", "--vocabulary", "300", "--out", "data"}, folder_->path())
            .status,
        0);
  }

  /// The check of a small encoder-decoder at this rate.
  static Finished check(const std::string& rate, const std::vector<std::string>& more = {}) {
    const std::vector<std::string> words =
        test::with_keys({"check", "--data", "data", "-q"},
                        {"model.d_model=32", "model.heads=2", "model.feed_forward=64", "model.encoder_layers=1",
                         "model.decoder_layers=1", "model.dropout=0", "train.batch_tokens=500", "train.warm_up=0",
                         "train.decay_start=1000", "train.steps=5000", "train.learning_rate=" + rate});
    return run_plumb(test::with(words, more), folder_->path());
  }
};

TEST_F(CheckVerb, AModerateRateTrainsAsResultAndPageSay) {
  const Finished finished = check("0.004", {"--json", "-", "--out", "checked"});
  EXPECT_EQ(finished.status, 0) << finished.output << finished.errors;
  const Json result = Json::parse(finished.output);
  EXPECT_EQ(result["verdict"], "trains");
  EXPECT_GT(result["largest_stable_rate"]["estimate"], 0.004);
  EXPECT_LT(result["largest_stable_rate"]["low"], result["largest_stable_rate"]["high"]);
  EXPECT_LE(result["cost"]["gradients"], 250);
  EXPECT_EQ(result["trials"][0]["outcome"], "trains");
  EXPECT_EQ(result["trials"][0]["learning_rate"], 0.004);
  EXPECT_EQ(read_json(*folder_ / "checked/check.json")["schema"], "plumb.check/1");
  const std::string page = read_file(*folder_ / "checked/report.html");
  EXPECT_CONTAINS(page, "Loss against learning rate");
  EXPECT_CONTAINS(page, R"("subject":"check")");
  EXPECT_CONTAINS(page, R"(,"Cost: )");                    // as a sentence
  EXPECT_EQ(check("0.004", {"--out", "data"}).status, 1);  // holds something else
}

TEST_F(CheckVerb, ARateInAWrongUnitDoesNot) {
  const Finished finished = check("4", {"--json", "-", "--budget", "500g"});
  EXPECT_EQ(finished.status, 3) << finished.output << finished.errors;
  const Json result = Json::parse(finished.output);
  EXPECT_EQ(result["trials"][0]["outcome"], "fails");
  EXPECT_LT(result["largest_stable_rate"]["estimate"], 2);
  ASSERT_FALSE(result["changes"].empty());
  for (const Json& change : result["changes"]) EXPECT_EQ(change["trial"]["learning_rate"], 4);
}

TEST_F(CheckVerb, AChangeThatATrialConfirmsIsSaid) {
  const std::vector<std::string> more =
      test::with_keys({"--json", "-"}, {"model.residual=post-ln", "model.decoder_layers=6"});
  const Finished finished = check("0.004", more);
  EXPECT_EQ(finished.status, 3) << finished.output << finished.errors;
  const Json result = Json::parse(finished.output);
  EXPECT_CONTAINS(result["answer"].get<std::string>(),
                  "; with model.initialization = \"small-init\" it trains at 0.004");
}

TEST_F(CheckVerb, SaysWhenTheBudgetIsTooSmall) {
  const Finished finished = check("0.004", {"--budget", "20g"});
  EXPECT_EQ(finished.status, 4) << finished.output << finished.errors;
  EXPECT_CONTAINS(finished.output, "\ncannot tell within this budget");
  EXPECT_TRUE(finished.output.starts_with("encoder-decoder, 1+1 × 32, ")) << finished.output;
  EXPECT_CONTAINS(finished.output, "500 tokens per step, 5,000 steps\n");
}

TEST_F(CheckVerb, AlarmsAreMeasuredAlongTraining) {
  const Finished finished = run_plumb(
      test::with_keys({"train", "--data", "data", "--out", "watched", "-q"},
                      {"model.d_model=32", "model.heads=2", "model.feed_forward=64", "train.steps=2",
                       "train.batch_tokens=500", "watch.every=1", "watch.what=[\"alarms\"]", "watch.examples=8"}),
      folder_->path());
  ASSERT_EQ(finished.status, 0) << finished.errors;
  const std::string metrics = read_file(*folder_ / "watched/metrics.jsonl");
  for (const char* alarm : {"backward_gain", "epsilon", "gradient_at_input"})
    EXPECT_CONTAINS(metrics, std::string("\"alarm\":\"") + alarm + '"') << alarm;
  EXPECT_LACKS(metrics, "\"alarm\":\"duplicates\"") << "looks at the data, once";
}

TEST_F(CheckVerb, RefusesWhatTrainingRefuses) {
  EXPECT_EQ(run_plumb({"check"}, folder_->path()).status, 2);
  EXPECT_EQ(run_plumb({"check", "--data", "nowhere"}, folder_->path()).status, 1);
  EXPECT_EQ(check("0.004", {"--budget", "lots"}).status, 2);
  const Finished long_warm_up = run_plumb({"check", "--data", "data", "--set", "train.warm_up=0"}, folder_->path());
  EXPECT_EQ(long_warm_up.status, 1);  // the rate would decay from the first step
  EXPECT_CONTAINS(long_warm_up.errors, "decay_start");
}

}  // namespace
}  // namespace plumb
