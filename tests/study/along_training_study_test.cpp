// [along_training]: its figures show the records of its runs.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "plumb/run/metrics_file.h"
#include "plumb/study/study.h"
#include "study/parts.h"
#include "train/copy_task.h"

namespace plumb {
namespace {

TEST(AlongTrainingStudy, DrawsTheRecordsOfItsRuns) {
  const test::TemporaryDirectory directory;
  test::make_copy_task(directory / "data");
  StudyConfig config;
  config.study.schemes = {"post-ln", "pre-ln"};
  config.data.directory = (directory / "data").string();
  config.model.d_model = 8;
  config.model.feed_forward = 12;
  config.model.heads = 2;
  config.train = test::copy_run(directory / "data").train;
  config.train.steps = 6;
  config.parts = test::parts(R"(
[along_training]
layers = 2
warm_ups = [0, 5]
every = 2
examples = 6
reference_products = 8
)");
  EXPECT_TRUE(config.trains());
  const Json results = run_study(config, directory / "out");
  EXPECT_TRUE(results["verdicts"].empty());
  std::map<std::string, Json> figures;
  for (const Json& figure : results["figures"]) figures[figure["id"]] = figure;

  std::map<std::string, std::filesystem::path> runs;  // by name without the hash
  for (const auto& entry : std::filesystem::directory_iterator(directory / "out" / "runs")) {
    const std::string name = entry.path().filename();
    runs[name.substr(0, name.rfind('-'))] = entry.path();
  }
  ASSERT_EQ(runs.size(), 4U);
  const std::vector<WatchRecord> records = read_records(runs.at("along-post-ln-warmup5") / "metrics.jsonl").watched;
  ASSERT_EQ(records.size(), 5U);  // 0, 1, 2, 4, 6
  const auto series = [&](const std::string& figure, const std::string& name) -> Json {
    for (const Json& each : figures[figure]["series"]) {
      if (each["name"] == name) return each;
    }
    return Json();
  };
  const auto expect_drawn = [&](const std::string& figure, const std::string& name, auto value) {
    const Json found = series(figure, name);
    ASSERT_TRUE(found.is_object()) << figure << name;
    EXPECT_EQ(found["x"], Json::array({1, 2, 4, 6}));
    for (size_t i = 1; i < records.size(); ++i) {
      EXPECT_NEAR(found["y"][i - 1].template get<double>(), value(to_json(records[i]).at("watch")), 1e-12)
          << figure << name << i;
    }
  };
  const auto preconditioned = [](const Json& values) { return values["curvature"]["preconditioned"]; };
  expect_drawn("along_preconditioned_post-ln", "warm-up 5",
               [&](const Json& values) { return preconditioned(values)["value"].get<double>(); });
  expect_drawn("along_preconditioned_post-ln", "threshold, warm-up 5",
               [&](const Json& values) { return preconditioned(values)["threshold"].get<double>(); });
  expect_drawn("along_stability", "Post-LN, warm-up 5", [&](const Json& values) {
    return preconditioned(values)["value"].get<double>() / preconditioned(values)["threshold"].get<double>();
  });
  EXPECT_EQ(series("along_critical_post-ln", "of the run, warm-up 5")["y"].size(), 4U);
  EXPECT_EQ(series("along_critical_share", "critical")["y"], Json::array({1, 1, 1, 1}));
  std::vector<double> shares, drawn;
  for (const WatchRecord& record : records) {
    if (const Json found = to_json(record).at("watch").value("critical_rate", Json::object()); found.contains("share"))
      shares.push_back(found["learning_rate"].get<double>() /
                       std::sqrt(found["low"].get<double>() * found["high"].get<double>()));
  }
  const Json line = series("along_critical_share", "Post-LN, warm-up 5");
  for (const Json& y : line["y"]) {
    if (!y.is_null()) drawn.push_back(y.get<double>());
  }
  EXPECT_GT(shares.size(), 0U);
  ASSERT_EQ(drawn.size(), shares.size());
  for (size_t i = 0; i < drawn.size(); ++i) EXPECT_NEAR(drawn[i], shares[i], 1e-12);
  expect_drawn("along_updates_post-ln", "decoder 2, warm-up 5",
               [](const Json& values) { return values["updates"]["ratio"]["decoder.layers.1"].get<double>(); });
  expect_drawn("along_gradients_post-ln", "E‖g‖², warm-up 5",
               [](const Json& values) { return values["gradient_noise"]["mean_square_norm"].get<double>(); });
  expect_drawn("along_similarity_decoder", "Post-LN, warm-up 5",
               [](const Json& values) { return values["activations"]["token_cosine"]["decoder"].get<double>(); });
  expect_drawn("along_logit", "Post-LN, warm-up 5", [](const Json& values) {
    double largest = -1e300;
    for (const Json& logit : values["activations"]["largest_logit"]) largest = std::max(largest, logit.get<double>());
    return largest;
  });
  for (const char* id : {"along_hessian", "along_noise", "along_entropy", "along_similarity_encoder"})
    EXPECT_EQ(figures.count(id), 1U) << id;
  EXPECT_EQ(series("along_hessian", "Pre-LN, no warm-up")["style"], "dashed");
  ASSERT_EQ(results["tables"].size(), 3U);
  EXPECT_EQ(results["tables"][0]["rows"].size(), 4U);
  EXPECT_EQ(results["tables"][1]["rows"].size(), 4U);
  EXPECT_EQ(results["tables"][1]["rows"][1][3], 4);    // steps measured of Post-LN with warm-up 5
  EXPECT_EQ(results["tables"][2]["rows"].size(), 8U);  // two matrices each
  // A second run finds everything measured.
  const Json again = run_study(config, directory / "out");
  EXPECT_EQ(again["figures"], results["figures"]);
}

}  // namespace
}  // namespace plumb
