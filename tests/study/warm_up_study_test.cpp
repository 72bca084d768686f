// A study with warm-ups in tokens.
#include <gtest/gtest.h>

#include <filesystem>

#include "plumb/base/progress.h"
#include "plumb/study/study.h"
#include "plumb/train/metrics_file.h"
#include "study/entry.h"
#include "train/copy_task.h"

namespace plumb {
namespace {

TEST(WarmUpStudy, ComparesWarmUpsInTokens) {
  set_verbosity(Verbosity::quiet);
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
  config.training =
      TrainingStudy{{0, Duration::parse("1kt"), Duration::parse("10kt")}, {1e-2}, {1}, 1, 0, "valid", 1, {}};
  const Json results = run_study(config, folder / "out");
  set_verbosity(Verbosity::normal);

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
      EXPECT_DOUBLE_EQ(points[0].learning_rate, 1e-2);
    }
    if (name.find("-warmup10kt-") == std::string::npos) continue;
    ++checked;
    EXPECT_LT(points[2].learning_rate, 0.5e-2);
    EXPECT_DOUBLE_EQ(points[2].learning_rate, 3 * points[0].learning_rate);
  }
  EXPECT_EQ(checked, 2);
}

}  // namespace
}  // namespace plumb
