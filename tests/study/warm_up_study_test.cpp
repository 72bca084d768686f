// A study with warm-ups in tokens.
#include <gtest/gtest.h>

#include <filesystem>

#include "plumb/run/metrics_file.h"
#include "plumb/study/study.h"
#include "plumb/study/trained_run.h"
#include "study/entry.h"
#include "study/parts.h"
#include "train/copy_task.h"

namespace plumb {
namespace {

TEST(WarmUpStudy, ComparesWarmUpsInTokens) {
  const test::TemporaryDirectory folder;
  test::make_copy_task(folder / "data");
  const RunConfig run = test::copy_run(folder / "data");
  StudyConfig config;
  config.study.schemes = {"pre-ln"};
  config.data.directory = (folder / "data").string();
  config.model = run.model;
  config.train = run.train;
  config.train.steps = 3;
  config.train.log_every = 1;
  config.parts = test::parts(R"(
[training]
warm_ups = [0, "1kt", "10kt"]
learning_rates = [1e-2]
layers = [1]
)");
  const Json results = run_study(config, folder / "out");

  std::vector<Json> warm_ups;
  for (const Json& row : test::entry(results["tables"], "id", "runs")["rows"]) warm_ups.push_back(row[3]);
  EXPECT_EQ(warm_ups, (std::vector<Json>{0, "1kt", "10kt"}));
  EXPECT_EQ(test::entry(results["tables"], "id", "warm_up")["rows"].size(), 1U);  // no warm-up against the longest

  // Learning rates: the run takes only the first three of the many steps of a linear warm-up over 10,000 tokens.
  int checked = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "out" / "runs")) {
    const std::string name = entry.path().filename();
    const std::vector<TrainPoint> points = read_metrics(entry.path() / "metrics.jsonl");
    ASSERT_GE(points.size(), 3U);
    if (name.find("-warmup0-") != std::string::npos) {
      ++checked;
      // The decay begins where the longest warm-up ends, not at step 1.
      for (size_t i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(points[i].learning_rate, 1e-2) << i;
    }
    if (name.find("-warmup10kt-") == std::string::npos) continue;
    ++checked;
    EXPECT_LT(points[2].learning_rate, 0.5e-2);
    EXPECT_DOUBLE_EQ(points[2].learning_rate, 3 * points[0].learning_rate);
  }
  EXPECT_EQ(checked, 2);
}

// With every schedule: the runs differ only until the longest warm-up is over.
TEST(WarmUpStudy, ComparesRunsWithTheSameRatesAfterwards) {
  const std::vector<Duration> warm_ups = {0, 3, 20, 7};
  for (const std::string factor : {"rsqrt_decay", "cosine_decay", "linear_decay", "step_decay", "stable_decay"}) {
    for (const int64_t decay_start : {0, 5}) {
      TrainConfig train;
      train.schedule = "constant * linear_warmup * " + factor;
      train.decay_start = decay_start;
      train.steps = 60;
      const Schedule longest = make_schedule(with_warm_up(train, 20, warm_ups), 16);
      for (const Duration& warm_up : warm_ups) {
        const Schedule schedule = make_schedule(with_warm_up(train, warm_up, warm_ups), 16);
        // Cosine and line end at the last step wherever they begin, so only an inverse square root needs to be tied.
        const bool tied = decay_start > 0 || factor == "rsqrt_decay";
        for (const int64_t step : {20, 21, 40, 60}) {
          EXPECT_NEAR(schedule(step), longest(step), tied ? 1e-15 : 0.5 * train.learning_rate)
              << factor << ", warm-up " << warm_up.text() << ", step " << step;
        }
      }
    }
  }
}

}  // namespace
}  // namespace plumb
