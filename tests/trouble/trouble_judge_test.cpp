// The trouble judge on its own, and its configuration.
#include "plumb/trouble/trouble_judge.h"

#include <gtest/gtest.h>

#include <string>

#include "plumb/run/config.h"
#include "support/errors.h"

namespace plumb {
namespace {

TEST(TroubleJudge, TheFirstUpdateOfAFrozenLayerIsNoSpike) {
  TroubleConfig config;
  config.window = 4;
  TroubleJudge judge(config, {{.name = "encoder.layers.0"}}, 0, 0);
  for (int64_t step = 1; step <= 20; ++step) {
    EXPECT_EQ(judge.judge({step, 2, 1, 0.01}).cause, StepJudgment::Cause::none) << step;
    judge.see_updates(step, 0.01, {step < 12 ? 0.0 : 0.5});
  }
  judge.see_updates(21, 0.01, {2.0});
  EXPECT_EQ(judge.judge({22, 2, 1, 0.01}).cause, StepJudgment::Cause::spike);
}

TEST(TroubleJudge, ATableMayVaryMoreThanAMatrix) {
  TroubleConfig config;
  config.window = 8;
  TroubleJudge judge(config, {{.name = "decoder.layers.0"}, {.name = "position.weight", .table = true}}, 0, 0);
  const auto cause_after = [&](int64_t step, double matrix, double table) {
    judge.see_updates(step, 0.01, {matrix, table});
    return judge.judge({step + 1, 2, 1, 0.01}).cause;
  };
  for (int64_t step = 1; step <= 20; ++step) EXPECT_EQ(cause_after(step, 1, 1), StepJudgment::Cause::none) << step;
  EXPECT_EQ(cause_after(21, 1, 3), StepJudgment::Cause::none);
  EXPECT_EQ(cause_after(22, 3, 1), StepJudgment::Cause::spike);
  EXPECT_EQ(cause_after(23, 1, 6), StepJudgment::Cause::spike);
}

TEST(TroubleJudge, MistakesInTheConfigurationAreErrors) {
  const auto error_of = [](const std::string& toml) {
    TrainConfig config;
    return test::message_of([&] {
      Config::from_string("[train.trouble]\n" + toml, "test").read("train", config);
      validate(config);
    });
  };
  EXPECT_EQ(error_of("on_nonfinite = \"ignore\""),
            "test:2:16: train.trouble.on_nonfinite = \"ignore\" must be \"stop\", \"skip\" or \"rollback\"");
  EXPECT_EQ(error_of("on_spike = \"stop\""),
            "test:2:12: train.trouble.on_spike = \"stop\" must be \"report\", \"skip\" or \"rollback\"");
  EXPECT_EQ(error_of("skip_limit = 0"), "test:2:14: train.trouble.skip_limit = 0 must lie in [1, 1,000,000]");
  EXPECT_EQ(error_of("threshold = 0.5"), "test:2:13: train.trouble.threshold = 0.5 must lie in [1, 1,000,000]");
  EXPECT_EQ(error_of("on_spike = \"skip\"\nwindow = 0"), "train.trouble.on_spike = \"skip\" needs a window");
  EXPECT_NE(error_of("on_spike = \"rollback\"\nrollback_rate = 1.0"), "accepted");
  EXPECT_EQ(error_of("on_spike = \"rollback\"\nrollback_rate = 1.0\npass_over = true"), "accepted");
  EXPECT_NE(TrainConfig(), [] {
    TrainConfig other;
    other.trouble.window = 64;
    return other;
  }());
}

}  // namespace
}  // namespace plumb
