// Studies of encoders that predict masked tokens.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "plumb/data/directory.h"
#include "plumb/study/study.h"
#include "study/parts.h"
#include "support/contains.h"
#include "support/entries.h"
#include "support/paths.h"

namespace plumb {
namespace {

StudyConfig small_study() {
  StudyConfig config;
  config.data.pairs = 200;
  config.data.block = 14;
  config.data.vocabulary = 100;
  config.model.kind = "encoder";
  config.model.pooling = "none";
  config.model.d_model = 8;
  config.model.feed_forward = 12;
  config.model.heads = 2;
  return config;
}

TEST(EncoderStudy, PreparesAMaskTokenMeasuresAndTrains) {
  const test::TemporaryDirectory folder;
  StudyConfig config = small_study();
  config.study.schemes = {"post-ln", "pre-ln"};
  config.train.label_smoothing = 0;
  config.train.batch_tokens = 128;
  config.train.steps = 4;
  config.train.validate_every = 2;
  config.train.optimizer = "adamw";
  config.train.clip_norm = 1;
  config.study.claims = test::claims_of("bert_warmup");
  std::erase_if(config.study.claims, [](const StudyClaim& claim) { return claim.quantity != "validation_loss"; });
  config.parts = test::parts(R"(
[gradients]
layers = 1
seeds = 2
pairs = 8
[training]
warm_ups = [0, 80]
learning_rates = [1e-2]
layers = [1]
seeds = 2
)");
  run_study(config, folder / "out");
  // Four steps do not lower the loss below that of a model that ignores its input, and failed runs are not compared:
  // the report is made from stored measurements with half the losses.
  for (const auto& each : std::filesystem::directory_iterator(folder / "out" / "measurements")) {
    if (!each.path().filename().string().starts_with("train-")) continue;
    Json measurement = read_json(each.path());
    Json& loss = measurement["result"]["metrics"]["valid_nll"];
    loss = loss.get<double>() / 2;
    write_json(each.path(), measurement);
  }
  const Json results = run_study(config, folder / "out");

  EXPECT_GE(DataDirectory::open(folder / "out/data").source_tokenizer().specials().mask, 0);
  EXPECT_TRUE(results["measurements"].contains("gradients")) << results["measurements"].dump();
  // Two schemes with and without warm-up, two seeds each: eight runs that learned to predict masked tokens.
  int64_t runs = 0;
  for (const auto& each : std::filesystem::recursive_directory_iterator(folder / "out"))
    runs += each.path().filename() == "result.json" ? 1 : 0;
  EXPECT_EQ(runs, 8);

  // The claim about masked tokens compares Pre-LN without warm-up with Post-LN with it; the table of runs has their
  // losses.
  std::map<std::string, double> loss;  // sum over the seeds
  for (const Json& row : test::with_id(results["tables"], "runs")["rows"])
    loss[row[0].get<std::string>() + (row[3] == 0 ? " without" : " with")] += row[8].get<double>();
  const auto expect_effect = [&](const char* claim, const char* of, const char* against) {
    const Json& verdict = test::entry(results["verdicts"], "claim", claim);
    EXPECT_NEAR(verdict["effect"]["mean"].get<double>(), (loss.at(of) - loss.at(against)) / 2, 1e-12) << claim;
  };
  expect_effect("Pre-LN without warm-up learns to predict masked tokens faster than Post-LN with it", "pre-ln without",
                "post-ln with");
  expect_effect("Pre-LN: trains without warm-up, losing less than 0.1 nats", "pre-ln without", "pre-ln with");
  expect_effect("Post-LN: training without warm-up is clearly worse, or fails", "post-ln without", "post-ln with");
  const std::string title = test::with_id(results["figures"], "loss_adamw-clipped1_layers1")["title"];
  EXPECT_CONTAINS(title, ", 1 layer, ");
}

// Other masked positions are another batch: what was measured on the first one is not reused.
TEST(EncoderStudy, MeasuresAgainWithAnotherTask) {
  const test::TemporaryDirectory folder;
  StudyConfig config = small_study();
  config.study.schemes = {"pre-ln"};
  config.parts = test::parts("[gradients]\nlayers = 1\nseeds = 1\npairs = 8\n");
  const Json usual = run_study(config, folder / "out");
  EXPECT_EQ(run_study(config, folder / "out")["measurements"], usual["measurements"]);
  EXPECT_LACKS(write_study(config), "[task");

  config.task =
      read_study(Config::from_string("[gradients]\n[task.masked-language-modeling]\nshare = 0.5", "study.toml")).task;
  const Json again = run_study(config, folder / "out");
  EXPECT_NE(again["measurements"], usual["measurements"]);
  EXPECT_EQ(run_study(config, folder / "fresh")["measurements"], again["measurements"]);
  EXPECT_CONTAINS(write_study(config), "share = 0.5");
}

}  // namespace
}  // namespace plumb
