// [watch] in a study: its figures show what the runs of [training] measured along the way.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "plumb/base/files.h"
#include "plumb/run/metrics_file.h"
#include "plumb/study/study.h"
#include "study/parts.h"
#include "support/contains.h"
#include "support/entries.h"
#include "train/copy_task.h"

namespace plumb {
namespace {

/// The records of the run whose name begins so.
std::vector<WatchRecord> records_of(const std::filesystem::path& runs, const std::string& name) {
  for (const auto& run : std::filesystem::directory_iterator(runs)) {
    if (run.path().filename().string().starts_with(name)) return read_records(run.path() / "metrics.jsonl").watched;
  }
  return {};
}

TEST(WatchedStudy, DrawsWhatItsRunsMeasured) {
  const test::TemporaryDirectory directory;
  test::make_copy_task(directory / "data");
  StudyConfig config;
  config.study.schemes = {"post-ln", "pre-ln"};
  config.study.axes = {{"train.warm_up", {"0", "5"}}};
  config.data.directory = (directory / "data").string();
  config.model.d_model = 8;
  config.model.feed_forward = 12;
  config.model.heads = 2;
  config.train = test::copy_run(directory / "data").train;
  config.train.steps = 6;
  config.watch.every = 2;
  config.watch.what.emplace_back("critical_rate");
  config.watch.examples = 6;
  config.parts = test::parts(R"(
[training]
layers = [2]
learning_rates = [1e-3, 1e-2]
seeds = 2
)");
  const Json results = run_study(config, directory / "out");
  EXPECT_CONTAINS(read_file(directory / "out" / "study.toml"), "[watch]\nevery = 2\n");

  // Each arm at its best rate: the mean of its two seeds, with both as the ends of the band.
  double best = 0;
  for (const Json& row : test::entry(results["tables"], "id", "sweeps")["rows"]) {
    if (row[0] == "post-ln, warm up 5") best = row[4];
  }
  ASSERT_GT(best, 0);
  const std::string name = fmt::format("train-post-ln-warm-up-5-layers2-adam-warmup5-lr{:g}-seed", best);
  const auto first = records_of(directory / "out" / "runs", name + "1-");
  const auto second = records_of(directory / "out" / "runs", name + "2-");
  ASSERT_EQ(first.size(), 5U);  // 0, 1, 2, 4, 6
  ASSERT_EQ(second.size(), 5U);
  const auto figure = [&](const std::string& id) -> const Json& {
    return test::entry(results["figures"], "id", "watch_" + id + "_adam_layers2");
  };
  const auto expect_drawn = [&](const std::string& id, const auto& value) {
    const Json& line = test::entry(figure(id)["series"], "name", "Post-LN, warm up 5");
    EXPECT_EQ(line["group"], "post-ln, warm up 5");
    EXPECT_EQ(line["x"], Json::array({0, 1, 2, 4, 6})) << id;
    for (size_t i = 0; i < first.size(); ++i) {
      const double a = value(to_json(first[i]).at("watch")), b = value(to_json(second[i]).at("watch"));
      EXPECT_NEAR(line["y"][i].template get<double>(), (a + b) / 2, 1e-9) << id << i;
      EXPECT_NEAR(line["low"][i].template get<double>(), std::min(a, b), 1e-9) << id << i;
    }
  };
  expect_drawn("curvature_hessian_value",
               [](const Json& values) { return values["curvature"]["hessian"]["value"].get<double>(); });
  expect_drawn("gradient_noise_mean_square_norm",
               [](const Json& values) { return values["gradient_noise"]["mean_square_norm"].get<double>(); });
  for (const char* id : {"curvature_preconditioned_value", "curvature_preconditioned_threshold", "updates_ratio",
                         "critical_rate_learning_rate"})
    EXPECT_EQ(figure(id)["series"].size(), 4U) << id;
  const Json& without = test::entry(figure("curvature_hessian_value")["series"], "name", "Pre-LN, warm up 0");
  EXPECT_EQ(without["style"], "dashed");
  EXPECT_CONTAINS(figure("updates_ratio")["caption"].get<std::string>(), "The largest of all layers.");
}

}  // namespace
}  // namespace plumb
