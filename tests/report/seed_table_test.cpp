// Runs over seeds: groups, means, and Student's t intervals.
#include "plumb/report/seed_table.h"
#include "support/contains.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plumb {
namespace {

RunSummary run_with(const std::string& name, const std::string& seed, const std::string& rate, double accuracy) {
  RunSummary run;
  run.name = name;
  run.directory = name;
  run.settings = {{"train.learning_rate", rate}, {"train.seed", seed}};
  run.metrics.set("accuracy", accuracy);
  run.metrics.set("accuracy_low", 0);
  run.best_valid_nll = 2 * accuracy;
  return run;
}

TEST(SeedTable, AveragesRunsThatDifferInTheirSeedAlone) {
  const std::vector<RunSummary> runs = {run_with("a1", "1", "0.1", 0.6), run_with("b1", "1", "0.2", 0.9),
                                        run_with("a2", "2", "0.1", 0.7), run_with("a3", "3", "0.1", 0.8)};
  const auto groups = runs_by_configuration(runs);
  ASSERT_EQ(groups.size(), 2U);
  ASSERT_EQ(groups[0].size(), 3U);
  EXPECT_EQ(groups[0][2].name, "a3");
  const Interval accuracy = over_runs(groups[0], "accuracy");
  EXPECT_NEAR(accuracy.mean, 0.7, 1e-12);
  const double half = 4.302652729749464 * 0.1 / std::sqrt(3.0);  // t of 0.975 with 2 degrees of freedom
  EXPECT_NEAR(accuracy.high - accuracy.mean, half, 1e-9);
  EXPECT_NEAR(over_runs(groups[0], "loss").mean, 1.4, 1e-12);
  EXPECT_EQ(over_runs(groups[1], "accuracy").count, 1);
  EXPECT_EQ(over_runs(groups[0], "bleu").count, 0);

  const Json json = seed_table_json(runs);
  EXPECT_EQ(json["differs"], Json({"train.learning_rate"}));
  EXPECT_EQ(json["configurations"][0]["runs"], Json({"a1", "a2", "a3"}));
  EXPECT_EQ(json["configurations"][0]["metrics"]["accuracy"]["count"], 3);
  EXPECT_FALSE(json["configurations"][1]["metrics"]["accuracy"].contains("low"));
  EXPECT_FALSE(json["configurations"][0]["metrics"].contains("accuracy_low"));
  const std::string text = seed_table_text(runs);
  EXPECT_CONTAINS(text, "first run  runs  learning_rate");
  EXPECT_CONTAINS(text, "0.7 (0.4516 to 0.9484)");
}

}  // namespace
}  // namespace plumb
