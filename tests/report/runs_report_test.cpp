// The report on training runs: its figures show the points of the runs.
#include "plumb/report/runs_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "plumb/analysis/watch/updates.h"
#include "plumb/report/html.h"
#include "plumb/run/run_table.h"
#include "support/contains.h"
#include "support/entries.h"

namespace plumb {
namespace {

/// A run with points at steps 10, 20, …; 100 tokens per step at 50 tokens/s, so a point every 20 s.
RunSummary made_up(const std::string& name, int64_t points) {
  RunSummary run;
  run.name = name;
  run.outcome = "finished";
  run.settings = {{"train.learning_rate", name == "a" ? "0.001" : "0.002"}, {"train.steps", "100"}};
  for (int64_t i = 1; i <= points; ++i) {
    const auto number = static_cast<double>(i);
    TrainPoint point;
    point.step = 10 * i;
    point.nll = 5.0 / number;
    point.learning_rate = 1e-3;
    point.gradient_norm = 0.5 * number;
    point.tokens = 1000 * i;
    point.tokens_per_second = 50;
    if (i % 2 == 0) {
      point.metrics.set("valid_nll", 6.0 / number);
      point.metrics.set("bleu", 3.0 * number);
    }
    run.history.push_back(point);
    run.metrics.set(point.metrics);
    const UpdateMeasurement updates{{{"encoder.layers.0", 0.1 * number}, {"decoder.layers.0", 0.2 * number}},
                                    0.01 * number};
    run.watched.push_back({10 * i, {{"updates", {.values = described_json(updates), .seconds = 1}}}});
  }
  run.step = 10 * points;
  const int64_t best = points / 2 * 2;
  run.best_valid_nll = 6.0 / static_cast<double>(best);
  run.best_step = 10 * best;
  return run;
}

const Json& figure(const Json& report, const std::string& id) { return test::with_id(report["figures"], id); }

std::vector<double> numbers(const Json& list) {
  std::vector<double> found;
  for (const Json& each : list) found.push_back(each.is_null() ? std::nan("") : each.get<double>());
  return found;
}

struct OddNumbers {
  double number = 0;
  NamedNumbers list;
};
void describe(Fields& field, OddNumbers& odd) {
  field("c~d", odd.number);
  field("list", odd.list);
}

TEST(RunsReport, ShowsNumbersWhateverTheirNames) {
  RunSummary run = made_up("a", 1);
  run.metrics.set("", 1.0);
  run.history.back().metrics.set("", 1.0);
  run.watched.clear();
  run.watched.push_back({1, {{"a/b", {.values = described_json(OddNumbers{1.5, {}})}}}});
  run.watched.push_back({2, {{"a/b", {.values = described_json(OddNumbers{3.5, {{"99999999999999999999999", 4.5}}})}}}});
  const Json report = runs_report({run});
  std::map<std::string, std::vector<double>> found;
  for (const Json& each : report["figures"]) found[each["title"].get<std::string>()] = numbers(each["series"][0]["y"]);
  EXPECT_EQ(found.at("A/b, c~d"), (std::vector<double>{1.5, 3.5}));
  EXPECT_EQ(found.at("A/b, list, 99999999999999999999999"), (std::vector<double>{4.5}));
}

TEST(RunsReport, SaysWhichRunsHaveFailed) {
  RunSummary good = made_up("a", 4), bad = made_up("b", 4);
  good.learning = LearningJudgment{.learning = Learning::learned, .text = "it learned"};
  EXPECT_LACKS(runs_report({good}).dump(), "it learned");
  EXPECT_LACKS(run_table_text({good}, run_columns({good})), "learned");
  bad.learning = LearningJudgment{.learning = Learning::worse_than_uniform, .text = "it ends at 7.91"};
  const Json report = runs_report({good, bad});
  EXPECT_EQ(report["summary"].back(), "b has failed: it ends at 7.91.");
  const Json& table = report["tables"][0];
  EXPECT_EQ(table["columns"].back(), "learning");
  EXPECT_EQ(table["rows"][0].back(), "learned");
  EXPECT_EQ(table["rows"][1].back(), "worse-than-uniform");
  EXPECT_EQ(run_table_json({good, bad})["runs"][1]["learning"]["failed"], true);
  // A diverged run says so as its outcome.
  bad.outcome = "diverged";
  EXPECT_LACKS(runs_report({good, bad}).dump(), "has failed");
}

TEST(RunsReport, DrawsLossesByStepTokensAndTime) {
  const Json report = runs_report({made_up("a", 4)});
  EXPECT_EQ(report["title"], "a");
  EXPECT_EQ(report["subject"], "training runs");
  const Json loss = figure(report, "loss");
  ASSERT_EQ(loss["series"].size(), 2U);
  EXPECT_EQ(numbers(loss["series"][0]["x"]), (std::vector<double>{10, 20, 30, 40}));
  EXPECT_EQ(numbers(loss["series"][0]["y"]), (std::vector<double>{5, 2.5, 5.0 / 3, 1.25}));
  EXPECT_EQ(loss["series"][1]["style"], "dashed");
  EXPECT_EQ(numbers(loss["series"][1]["x"]), (std::vector<double>{20, 40}));
  EXPECT_EQ(numbers(loss["series"][1]["y"]), (std::vector<double>{3, 1.5}));
  EXPECT_EQ(loss["other_x"][0]["label"], "target tokens");
  EXPECT_EQ(numbers(loss["series"][1]["other_x"][0]), (std::vector<double>{2000, 4000}));
  EXPECT_EQ(loss["other_x"][1]["label"], "seconds of training, evaluation excluded");
  EXPECT_EQ(numbers(loss["series"][1]["other_x"][1]), (std::vector<double>{40, 80}));
  EXPECT_EQ(numbers(figure(report, "metric_bleu")["series"][0]["y"]), (std::vector<double>{6, 12}));
  EXPECT_EQ(numbers(figure(report, "gradient_norm")["series"][0]["y"]), (std::vector<double>{0.5, 1, 1.5, 2}));
  EXPECT_EQ(numbers(figure(report, "learning_rate")["series"][0]["y"]).size(), 4U);
  const Json watched = figure(report, "watch_updates_total");
  EXPECT_EQ(numbers(watched["series"][0]["y"]).size(), 4U);
  EXPECT_FALSE(watched.contains("other_x"));
  EXPECT_EQ(figure(report, "watch_updates_ratio")["series"].size(), 2U);  // a curve for each layer
  for (const Json& each : report["figures"]) EXPECT_LACKS(each["id"].get<std::string>(), "seconds");
}

TEST(RunsReport, DrawsEpochsWhereEveryRunHasThem) {
  RunSummary first = made_up("a", 2), second = made_up("b", 2);
  first.history[0].epochs = 0.5;
  first.history[1].epochs = 1.25;
  const Json alone = figure(runs_report({first}), "loss");
  EXPECT_EQ(alone["other_x"][0]["label"], "epochs");
  EXPECT_EQ(numbers(alone["series"][0]["other_x"][0]), (std::vector<double>{0.5, 1.25}));
  EXPECT_EQ(alone["other_x"].size(), 3U);
  EXPECT_EQ(figure(runs_report({first, second}), "loss")["other_x"][0]["label"], "target tokens");
}

TEST(RunsReport, SaysOnceWhatIsTrueOfSeveralRuns) {
  std::vector<RunSummary> runs;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    RunSummary& run = runs.emplace_back(made_up(name, 2));
    run.directory = std::string("out/") + name;
    if (run.name < "e") run.trouble = "out/" + run.name + "/config.toml: line 3 is damaged";
    if (run.name < "c") run.learning = LearningJudgment{.learning = Learning::worse_than_uniform, .text = "it is lost"};
  }
  runs.back().trouble = "out/f/metrics.jsonl: no such file";
  const auto summary = runs_report(runs)["summary"].get<std::vector<std::string>>();
  EXPECT_EQ((std::vector<std::string>{summary.end() - 3, summary.end()}),
            (std::vector<std::string>{"2 runs (a, b) have failed: it is lost.",
                                      "4 runs (a, b, c and 1 more): config.toml: line 3 is damaged.",
                                      "f: metrics.jsonl: no such file."}));
}

TEST(RunsReport, LongRunsTakeHours) {
  RunSummary run = made_up("a", 4);
  for (TrainPoint& point : run.history) point.tokens *= 1000;
  const Json loss = figure(runs_report({run}), "loss");
  EXPECT_EQ(loss["other_x"][1]["label"], "hours of training, evaluation excluded");
  EXPECT_NEAR(loss["series"][1]["other_x"][1][1].get<double>(), 80'000 / 3600.0, 1e-9);
}

TEST(RunsReport, ComparesManyRuns) {
  std::vector<RunSummary> runs = {made_up("a", 4), made_up("b", 2), made_up("c", 2), made_up("d", 2)};
  runs[2].settings[0].second = "0.004";
  runs[1].outcome = "diverged";
  runs[3].history.clear();
  runs[3].watched.clear();
  runs[3].best_valid_nll.reset();
  runs[3].settings.clear();
  runs[3].outcome = "unreadable";
  runs[3].trouble = "config.toml is broken";
  const Json report = runs_report(runs);
  const Json validation = figure(report, "validation");
  ASSERT_EQ(validation["series"].size(), 3U);
  EXPECT_EQ(validation["series"][0]["group"], "learning_rate 0.001");
  EXPECT_TRUE(validation["series"][1]["y"].back().is_null());  // the page marks where it diverged
  EXPECT_EQ(figure(report, "training")["series"].size(), 3U);
  EXPECT_EQ(numbers(figure(report, "watch_updates_ratio")["series"][0]["y"])[0], 0.2);  // the largest of the layers
  const Json table = report["tables"][0];
  EXPECT_EQ(table["columns"][1], "learning_rate");
  ASSERT_EQ(table["rows"].size(), 4U);
  EXPECT_EQ(table["rows"][1][1], 0.002);
  EXPECT_TRUE(table["rows"][3][1].is_null());
  EXPECT_EQ(table["rows"][3].back(), "config.toml is broken");
  EXPECT_EQ(report["settings"][0]["items"][0], Json({"steps", "100"}));  // shared by all readable runs
  EXPECT_EQ(report["summary"][0], "4 runs: 1 diverged, 2 finished, 1 unreadable.");
  EXPECT_CONTAINS(render_report(report), "4 training runs");
  const Json best = figure(report, "best_by_learning_rate");
  EXPECT_EQ(numbers(best["series"][0]["x"]), (std::vector<double>{0.001, 0.004}));
  EXPECT_EQ(numbers(best["series"][0]["y"]), (std::vector<double>{1.5, 3}));
  EXPECT_EQ(best["notes"], Json({"Without 1 run that diverged."}));
}

// Training and validation losses of up to three groups share a figure.
TEST(RunsReport, DrawsLossesTogetherAsLongAsTheyCanBeTold) {
  std::vector<RunSummary> runs = {made_up("a", 4), made_up("b", 4), made_up("c", 4)};
  runs[2].settings[0].second = "0.004";
  EXPECT_EQ(figure(runs_report(runs), "loss")["series"].size(), 6U);
  runs.push_back(made_up("d", 4));
  runs[3].settings[0].second = "0.008";
  const Json report = runs_report(runs);
  EXPECT_EQ(figure(report, "validation")["series"].size(), 4U);
  EXPECT_EQ(figure(report, "training")["series"].size(), 4U);
}

RunSummary of_seed(const std::string& name, const std::string& seed, int64_t points, double factor) {
  RunSummary run = made_up(name, points);
  run.settings.emplace_back("train.seed", seed);
  for (TrainPoint& point : run.history) point.nll *= factor;
  return run;
}

TEST(RunsReport, RunsThatDifferInTheirSeedAreAMeanWithABand) {
  std::vector<RunSummary> runs = {of_seed("a", "1", 4, 1), of_seed("a", "2", 2, 3), of_seed("b", "1", 4, 1)};
  runs[2].best_valid_nll = 9;
  runs[1].history[1].step = 15;  // an interruption: the other run has no such point
  const Json report = runs_report(runs);
  const Json loss = figure(report, "loss");
  EXPECT_EQ(loss["series"][0]["name"], "learning_rate 0.001 (2 runs), training");
  // Losses 5, 5/2, 5/3, 5/4 at steps 10 to 40 and 15 at step 10; then the second run has ended.
  EXPECT_EQ(numbers(loss["series"][0]["x"]), (std::vector<double>{10, 20, 30, 40}));
  EXPECT_EQ(numbers(loss["series"][0]["y"]), (std::vector<double>{10, 2.5, 5.0 / 3, 1.25}));
  EXPECT_EQ(numbers(loss["series"][0]["low"])[0], 5);
  EXPECT_EQ(numbers(loss["series"][0]["high"])[0], 15);
  EXPECT_CONTAINS(loss["caption"].get<std::string>(), "from the smallest to the largest");
  EXPECT_FALSE(loss["series"][2].contains("low"));
  EXPECT_CONTAINS(report["summary"][1].get<std::string>(), "of learning_rate 0.001 (2 runs): ");
  EXPECT_EQ(report["tables"][0]["rows"].size(), 3U);

  // Nothing is a mean once a run has diverged.
  runs[0].outcome = "diverged";
  runs[0].history.resize(2);
  runs[1] = of_seed("a", "2", 4, 3);
  const Json ended = figure(runs_report(runs), "loss")["series"][0];
  EXPECT_EQ(numbers(ended["x"]), (std::vector<double>{10, 20, 20}));
  EXPECT_TRUE(ended["y"].back().is_null());
}

TEST(RunsReport, EndsOfIntervalsAreABand) {
  RunSummary run = made_up("a", 2);
  run.history[1].metrics.set("accuracy", 0.5);
  run.history[1].metrics.set("accuracy_low", 0.4);
  run.history[1].metrics.set("accuracy_high", 0.7);
  run.metrics.set(run.history[1].metrics);
  const Json report = runs_report({run});
  const Json accuracy = figure(report, "metric_accuracy")["series"][0];
  EXPECT_EQ(accuracy["low"], Json({0.4}));
  EXPECT_EQ(accuracy["high"], Json({0.7}));
  EXPECT_LACKS(report.dump(), "metric_accuracy_low");
}

TEST(RunsReport, TheBestRunIsOneThatHasEnded) {
  RunSummary ended = made_up("a", 4), going = made_up("b", 6);  // 1.5 and 1.0 nats
  going.outcome = "running";
  const auto best = [](const std::vector<RunSummary>& runs) { return runs_report(runs)["summary"].dump(); };
  EXPECT_CONTAINS(best({ended, going}), "Best validation loss, of learning_rate 0.001: 1.5000");
  EXPECT_CONTAINS(best({going}), "Best validation loss so far: 1.0000");
}

TEST(RunsReport, RunsInTrainingSayHowFarTheyAre) {
  RunSummary ended = made_up("a", 4), going = made_up("b", 6);
  going.outcome = "running";
  going.history.back().loss = 5.0625;
  EXPECT_EQ(runs_report({ended, going})["summary"][1], "b trains: step 60 of 100, training loss 5.062.");
  going.settings[1].second = "\"10e\"";
  EXPECT_EQ(runs_report({going})["summary"][0], "The run trains: step 60, training loss 5.062.");
}

TEST(RunsReport, LossesOfDifferentTasksAreApart) {
  RunSummary translation = made_up("a", 4), labels = made_up("b", 4);
  translation.settings.emplace_back("task.name", "\"translation\"");
  labels.settings.emplace_back("task.name", "\"classification\"");
  const Json report = runs_report({translation, labels});
  EXPECT_EQ(figure(report, "loss_translation")["y"]["label"], "nats per token");
  EXPECT_EQ(figure(report, "loss_classification")["y"]["label"], "nats per example");
  EXPECT_EQ(figure(report, "loss_classification")["series"].size(), 2U);
  EXPECT_EQ(figure(report, "learning_rate")["series"][1]["name"], "classification");
  EXPECT_TRUE(report["summary"][1].get<std::string>().starts_with("Best validation loss, translation: 1.5000"));
}

}  // namespace
}  // namespace plumb
