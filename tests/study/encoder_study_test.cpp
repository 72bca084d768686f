// Studies of encoders that predict masked tokens.
#include <gtest/gtest.h>

#include "plumb/base/progress.h"
#include "plumb/data/directory.h"
#include "plumb/study/study.h"
#include "support/paths.h"

namespace plumb {
namespace {

TEST(EncoderStudy, PreparesAMaskTokenMeasuresAndTrains) {
  set_verbosity(Verbosity::quiet);
  const test::TemporaryDirectory folder;
  StudyConfig config;
  config.study.schemes = {"post-ln", "pre-ln"};
  config.data.pairs = 200;
  config.data.block = 14;
  config.data.vocabulary = 100;
  config.model.kind = "encoder";
  config.model.pooling = "none";
  config.model.d_model = 8;
  config.model.feed_forward = 12;
  config.model.heads = 2;
  config.train.label_smoothing = 0;
  config.train.batch_tokens = 128;
  config.train.steps = 4;
  config.train.validate_every = 2;
  config.gradients = GradientStudy{1, 2, 8};
  config.training = TrainingStudy{.warm_ups = {0, 2}, .learning_rates = {1e-2}, .layers = {1}};
  const Json results = run_study(config, folder / "out");
  set_verbosity(Verbosity::normal);

  EXPECT_GE(DataDirectory::open(folder / "out/data").source_tokenizer().specials().mask, 0);
  EXPECT_TRUE(results["measurements"].contains("gradients")) << results["measurements"].dump();
  // Two schemes with and without warm-up: four runs that learned masked tokens.
  int64_t runs = 0;
  for (const auto& each : std::filesystem::recursive_directory_iterator(folder / "out"))
    runs += each.path().filename() == "result.json" ? 1 : 0;
  EXPECT_EQ(runs, 4);
}

}  // namespace
}  // namespace plumb
