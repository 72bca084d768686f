// What studies report of the learning rates over which they train.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "study/parts.h"
#include "study/small_study.h"
#include "support/entries.h"
#include "support/errors.h"

namespace plumb {
namespace {

using test::entry;

TEST(Study, SensitivityIsComparedOverTheSameRatesFromTheLossBeforeTraining) {
  const test::TemporaryDirectory directory;
  StudyConfig config = test::small_on_copy_task(directory);
  using Rates = std::vector<double>;
  config.study.arms = {{"post-ln", {"model.residual=post-ln"}, Rates{1e-3, 1e-2, 1.0}},
                       {"pre-ln", {"model.residual=pre-ln"}, Rates{1e-2, 1.0, 30.0}}};
  config.parts = test::parts("[training]\nwarm_ups = [2]\nlayers = [1]\nseeds = 2\n");
  const Json results = run_study(config, directory / "out");
  const DataDirectory data = DataDirectory::open(directory / "data");
  std::vector<int64_t> all(static_cast<size_t>(data.split("valid").size()));
  std::iota(all.begin(), all.end(), int64_t{0});
  const Batch valid = make_task({}, data, "encoder-decoder")->dataset("valid")->batch(all);
  ModelConfig model = config.model;
  model.encoder_layers = model.decoder_layers = 1;
  model.source_vocabulary = data.source_vocabulary();
  model.target_vocabulary = data.target_vocabulary();
  const Json& runs = entry(results["tables"], "id", "runs")["rows"];
  int compared = 0;
  for (const Json& row : entry(results["tables"], "id", "sweeps")["rows"]) {
    model.residual = row[0];
    double sum = 0;
    for (const int seed : {5, 6}) {
      const std::unique_ptr<Model> built = make_model(model);
      built->initialize(static_cast<uint64_t>(seed));
      ForwardContext evaluation;
      const double start = built->loss(valid, {}, evaluation).nll / static_cast<double>(valid.labels.size());
      double least = start, total = 0;
      int rates = 0;
      for (const Json& run : runs) {
        const double rate = run[4];
        if (run[0] != row[0] || run[2] != row[2] || run[5] != seed || rate < 5e-3 || rate > 2) continue;
        const double loss = run[8].is_null() ? start : std::min(run[8].get<double>(), start);
        least = std::min(least, loss);
        total += loss;
        ++rates;
      }
      ASSERT_EQ(rates, 2);  // 0.01 and 1, which both arms have
      sum += total / 2 - least;
    }
    EXPECT_NEAR(row[10].get<double>(), sum / 2, 1e-5) << row;
    ++compared;
  }
  EXPECT_EQ(compared, 2);
}

/// The report is made from stored measurements, here with losses edited by hand.
TEST(Study, ComparesTheBestRatesBetweenThoseOfItsSweeps) {
  const test::TemporaryDirectory directory;
  StudyConfig config = test::small_on_copy_task(directory);
  StudyClaim claim;
  claim.text = "Pre-LN bears higher rates";
  claim.quantity = "best_learning_rate";
  claim.of = {"model.residual=pre-ln"};
  claim.against = {"model.residual=post-ln"};
  claim.above = 1.2;
  config.study.claims = {claim};
  const std::string part = "[training]\nwarm_ups = [2]\nlayers = [1]\nseeds = 2\n";
  config.parts = test::parts(part + "learning_rates = [1e-3, 1e-2]\n");
  test::expect_error([&] { run_study(config, directory / "two"); }, "does not measure 'best_learning_rate'");
  config.parts = test::parts(part + "learning_rates = [1e-3, 1e-2, 1e-1]\n");
  run_study(config, directory / "out");
  for (const auto& file : std::filesystem::directory_iterator(directory / "out" / "measurements")) {
    const std::string name = file.path().filename();
    if (!name.starts_with("train-")) continue;
    const auto is_of = [&name](const char* text) { return name.find(text) != std::string::npos; };
    Json measurement = read_json(file.path());
    measurement["result"].erase("learning");
    measurement["result"]["metrics"]["valid_nll"] = is_of("-lr0.01-")                     ? 0.5
                                                    : is_of("pre-ln") && is_of("-lr0.1-") ? 1.0
                                                                                          : 1.5;
    write_json(file.path(), measurement);
  }
  // Parabolas through 1.5, 0.5, 1.5 and through 1.5, 0.5, 1 over the logarithm of the rate: vertices at 0 and 1/6.
  const Json results = run_study(config, directory / "out");
  const Json& verdict = entry(results["verdicts"], "id", "claim1");
  EXPECT_EQ(verdict["quantity"], "best learning rate, Pre-LN / Post-LN");
  EXPECT_NEAR(verdict["effect"]["mean"].get<double>(), std::pow(10, 1.0 / 6), 1e-9);
  EXPECT_EQ(verdict["effect"]["seeds"], 2);
  EXPECT_EQ(verdict["figure"], "sweep_adam_layers1");
}

TEST(Study, AnArmMayHaveItsOwnOptimizerAndRates) {
  StudyConfig config = test::small_study();
  config.study.arms = {{"post-ln", {"model.residual=post-ln"}},
                       {"ours",
                        {"model.residual=pre-ln", "train.optimizer=sgd", "train.clip_norm=0.5"},
                        std::vector<double>{1e-2, 1e-1}}};
  config.parts = test::parts(test::kTrainingPart);
  const test::TemporaryDirectory directory;
  const Json results = run_study(config, directory / "out");
  std::multiset<std::string> runs;
  for (const Json& table : results["tables"]) {
    if (table["id"] != "runs") continue;
    for (const Json& row : table["rows"]) {
      runs.insert(
          fmt::format("{}: {} at {:g}", row[0].get<std::string>(), row[2].get<std::string>(), row[4].get<double>()));
    }
  }
  const std::string adam = "post-ln: adam at 0.001", sgd = "ours: sgd, clipped at 0.5 at 0.01",
                    faster = "ours: sgd, clipped at 0.5 at 0.1";
  EXPECT_EQ(runs, (std::multiset<std::string>{adam, adam, sgd, sgd, faster, faster}));  // two warm-ups each
}

}  // namespace
}  // namespace plumb
