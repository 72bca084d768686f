// Arms of runs that Plumb trained.
#include <cmath>
#include <limits>

#include "plumb/base/json.h"
#include "plumb/judge/judge.h"
#include "plumb/run/metrics_file.h"
#include "plumb/run/point.h"
#include "run_files.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

class PlumbsRuns : public test::RunFiles {
 protected:
  /// Writes a run that has not ended, with these validation losses at steps 10, 20, …; returns its directory.
  std::string unfinished(const std::string& name, const std::vector<double>& losses, int vocabulary = 1000) {
    (void)file(name + "/plumb.json", R"({"kind": "run"})");
    (void)file(name + "/config.toml", fmt::format("[model]\ntarget_vocabulary = {}\n", vocabulary));
    std::vector<TrainPoint> history(losses.size());
    for (size_t i = 0; i < losses.size(); ++i) {
      history[i].step = 10 * static_cast<int64_t>(i + 1);
      history[i].metrics.set("valid_loss", losses[i]);
    }
    MetricsFile(folder_ / name / "metrics.jsonl", history, {}, {});
    return (folder_ / name).string();
  }
};

// A run whose last validation loss is not a number has failed, although an earlier one was measured.
TEST_F(PlumbsRuns, EndWithTheirLastValueEvenIfItIsNaN) {
  const std::string stays = unfinished("stays", {2.5, 2.25}), ends = unfinished("ends", {2.5, std::nan("")});
  const auto values = read_run_records(ends).at(0).series.at("valid_loss");
  ASSERT_EQ(values.size(), 2U);
  EXPECT_EQ(values[0].value, 2.5);
  EXPECT_EQ(values[1].step, 20);
  EXPECT_TRUE(std::isnan(values[1].value));
  const RunArms arms = gather_arms({{"ends", ends}, {"stays", stays}}, {});
  EXPECT_EQ(arms.metric, "valid_loss");
  EXPECT_EQ(arms.arms.at(0).sweep.points.at(0).losses, std::vector<double>{std::numeric_limits<double>::infinity()});
  EXPECT_EQ(arms.arms.at(1).sweep.points.at(0).losses, std::vector<double>{2.25});
}

/// The verdicts on two arms of finished runs, of seeds 1, 2, …, with these validation losses; infinite if they
/// diverged. A run above `most` has learned nothing. `recorded`: what each run of the second arm says of that.
ArmVerdicts verdicts_on(const fs::path& folder, const std::vector<double>& first, const std::vector<double>& second,
                        double most, std::optional<double> recorded) {
  const auto write = [&](const char* arm, const std::vector<double>& losses, std::optional<double> limit) {
    for (size_t i = 0; i < losses.size(); ++i) {
      const fs::path run = folder / arm / std::to_string(i);
      TrainResult result{.steps = 10};
      result.history.resize(1);
      result.history[0].step = 10;
      result.history[0].metrics.set("valid_nll", losses[i]);
      if (std::isinf(losses[i])) result.outcome = RunOutcome::diverged;
      result.learning = LearningJudgment{.learning = std::isinf(losses[i]) ? Learning::diverged
                                                     : losses[i] >= most   ? Learning::frequencies_only
                                                                           : Learning::learned,
                                         .valid_frequencies = limit};
      write_file_atomic(run / "plumb.json", "{\"kind\": \"run\"}");
      write_file_atomic(run / "config.toml", "[train]\nseed = " + std::to_string(i + 1) + "\n");
      write_file_atomic(run / "result.json", result.to_json().dump());
    }
  };
  write("first", first, most);
  write("second", second, recorded);
  return judge_arms(gather_arms({{"first", (folder / "first").string()}, {"second", (folder / "second").string()}},
                                {.metric = "valid_nll"}),
                    {});
}

// How far beyond the labels' frequencies a run ends is no effect, and no finite loss is replaced by a worse one.
TEST_F(PlumbsRuns, ThatFailedCountWithAtMostTheLabelsFrequencies) {
  constexpr double kDiverged = std::numeric_limits<double>::infinity(), kMost = 5.5;
  const ArmVerdicts some = verdicts_on(folder_ / "some", {3, 3.25, 3.5, 3.25}, {3, 7, kDiverged, 5.75}, kMost, kMost);
  EXPECT_EQ(some.arms[0].failed, 0);
  EXPECT_EQ(some.arms[1].failed, 3);
  EXPECT_DOUBLE_EQ(some.arms[1].mean, (3 + 3 * kMost) / 4);
  EXPECT_DOUBLE_EQ(some.pairs[0].gain.mean, 3.25 - (3 + 3 * kMost) / 4);
  EXPECT_CONTAINS(some.pairs[0].rule, "no run counts with more than 5.50");
  EXPECT_EQ(some.pairs[0].reason, "failed: first 0 of 4, second 3 of 4");
  // Runs that all count alike are no repetitions of one.
  EXPECT_EQ(verdicts_on(folder_ / "all", {6, 7, 8}, {3, 3.25, 3.5}, kMost, kMost).pairs[0].outcome, "supported");
  EXPECT_EQ(verdicts_on(folder_ / "both", {6, 7, 8}, {6, 9, 5.5}, kMost, kMost).pairs[0].outcome,
            "this setting cannot test it");
  // Where some runs do not say it, failed runs are counted and not averaged; so they are if runs are of other data.
  for (const std::optional<double> other : {std::optional<double>(), std::optional(6.0)}) {
    const std::string name = other ? "other" : "none";
    const ArmVerdicts counted =
        verdicts_on(folder_ / name, {3, 3.25, 3.5, 3.25}, {3, 7, kDiverged, 5.75}, kMost, other);
    EXPECT_EQ(counted.arms[1].failed, 3) << name;
    EXPECT_EQ(counted.arms[1].mean, 3) << name;
    EXPECT_CONTAINS(counted.pairs[0].rule, "Fisher's exact test");
  }
}

TEST_F(PlumbsRuns, WhatIsDamagedIsNamed) {
  const std::string sound = unfinished("whole", {5}, 1000), damaged = unfinished("damaged", {5}, 1000);
  const fs::path history = fs::path(damaged) / "metrics.jsonl";
  const std::string whole = read_file(history);
  write_file_atomic(history, whole + "\x01\x02\n" + whole);
  const std::vector<std::string> notes = gather_arms({{"a", sound}, {"b", damaged}}, {}).notes;
  ASSERT_FALSE(notes.empty());
  const auto damaged_line = 1 + std::count(whole.begin(), whole.end(), '\n');
  EXPECT_CONTAINS(notes[0], fmt::format("{}: line {}", history.string(), damaged_line));
}

TEST_F(PlumbsRuns, ThatAreUnlikeAreSaidToBe) {
  const std::string small = unfinished("small", {5}, 1000), large = unfinished("large", {5}, 8000);
  EXPECT_EQ(gather_arms({{"small", small}, {"large", large}}, {}).notes,
            (std::vector<std::string>{"2 of 2 runs have not ended; their last values are compared",
                                      "vocabularies of 1000 to 8000 tokens: a token is not the same for all runs, so "
                                      "their losses per token differ"}));
  (void)file("small/result.json", TrainResult{.steps = 1}.to_json().dump());
  EXPECT_EQ(test::gathered("small", small).notes, std::vector<std::string>{});
  test::expect_error([&] { gather_arms({{"a", small}, {"b", small + "/"}}, {}); }, "small/: is named twice");
}

}  // namespace
}  // namespace plumb
