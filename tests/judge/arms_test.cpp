// Runs gathered into arms, and arms that are judged.
#include "plumb/judge/arms.h"

#include "plumb/base/random.h"
#include "plumb/judge/judge.h"
#include "run_files.h"
#include "support/logs_of_programs.h"

namespace plumb {
namespace {

using test::expect_refused;
using test::gathered;
using test::golden_run;
using test::notes_in;
using test::runs_in;

class GatherArms : public test::RunFiles {};

/// Which arms are found, with their means: "base 3.28125, wide 3.1".
std::string arms_in(const std::vector<std::string>& places, const ArmOptions& options) {
  std::string text;
  for (const JudgedArm& arm : judge_arms(gather_arms(arm_places(places), options), {}).arms)
    text += (text.empty() ? "" : ", ") + arm.name + " " + std::to_string(arm.runs) + " " + std::to_string(arm.mean);
  return text;
}

// At step 300: 4 − 0.75 + 2/64, and 0.1875 less.
constexpr const char* kArms = "base 3 3.281250, wide 3 3.093750";

TEST_F(GatherArms, FindsWhatDiffers) {
  EXPECT_EQ(arms_in({golden_run("tensorboard").string()}, {.metric = "eval"}), kArms);
  const std::string trainer = golden_run("trainer").string();
  EXPECT_EQ(arms_in({"base=" + trainer + "/base-*", "wide=" + trainer + "/wide-*"}, {}), kArms);
  EXPECT_EQ(arms_in({golden_run("lightning/base").string(), golden_run("lightning/wide").string()}, {}), kArms);
  EXPECT_EQ(arms_in({golden_run("tensorboard").string()}, {.metric = "eval", .at = "0"}),
            "base 3 4.031250, wide 3 4.031250");
  EXPECT_EQ(
      arms_in({golden_run("tensorboard").string()}, {.metric = "eval", .by = {"width"}, .where = {{"lr", "0.001"}}}),
      kArms);
}

TEST_F(GatherArms, BestRatesAreCompared) {
  std::string table = "arm,lr,seed,loss\n";
  for (const char* arm : {"a", "b"}) {
    for (int rate = 1; rate <= 3; ++rate) {
      for (int seed = 1; seed <= 4; ++seed) {
        const double best = arm[0] == 'a' ? 3.0 : 2.0;
        table += std::string(arm) + "," + std::to_string(rate) + "e-3," + std::to_string(seed) + "," +
                 std::to_string(best + 0.2 * (rate - 2) * (rate - 2) + 0.01 * ((seed * 7 + rate) % 5)) + "\n";
      }
    }
  }
  const std::string name = file("sweep.csv", table);
  const ArmVerdicts verdicts = judge_arms(gathered("", name), {});
  EXPECT_EQ(verdicts.arms[0].learning_rate, 2e-3);
  EXPECT_EQ(verdicts.arms[0].rates, 3);
  EXPECT_EQ(verdicts.pairs[0].outcome, "supported");
  // Without the fastest rate, the best one is at an end.
  const ArmVerdicts open =
      judge_arms(gathered("", file("open.csv", table), {.by = {"lr"}, .where = {{"arm", "a"}}}), {});
  EXPECT_EQ(open.pairs.size(), 2U);  // rates that are arms are no sweep
  std::string two = "arm,lr,seed,loss\n";
  for (size_t begin = two.size(); begin < table.size(); begin = table.find('\n', begin) + 1) {
    const std::string line = table.substr(begin, table.find('\n', begin) + 1 - begin);
    if (line.find("3e-3") == std::string::npos) two += line;
  }
  const ArmVerdicts ends = judge_arms(gathered("", file("two.csv", two)), {});
  EXPECT_EQ(ends.pairs[0].outcome, "undecided");
  EXPECT_CONTAINS(ends.pairs[0].reason, "largest of the sweep");
}

TEST_F(GatherArms, WhatIsNotClearIsAsked) {
  const std::string runs = file("runs.csv", "a,b,seed,loss,speed\nx,p,1,2,3\ny,q,1,2,3\n");
  const auto gather = [&](const ArmOptions& options) { return [=] { gathered("", runs, options); }; };
  test::expect_error(gather({}), "The runs differ in: a, b");
  test::expect_error(gather({.metric = "speed", .by = {"a"}}), "is more of \"speed\" better");
  test::expect_error(gather({.metric = "los", .by = {"a"}}), "no common metric");
  test::expect_error(gather({.by = {"c"}}), "no run has a setting \"c\"");
  expect_refused("", file("twice.csv", "arm,seed,loss\na,1,2\nb,1,2\na,1,3\n"), {}, "another run with the seed 1");
  test::expect_error([&] { judge_arms(gathered("a", runs), {}); }, "another run with the seed");
  const RunArms arms = gathered("", runs, {.by = {"a"}});
  test::expect_error([&] { judge_arms(arms, {}, "last", "z"); }, "no arm is called \"z\"");
  EXPECT_EQ(judge_arms(arms, {.by_seed = true}).pairs[0].outcome, "undecided");
}

// The best of more values is lower by chance: equal arms of 10 and 200 validations with noise.
TEST_F(GatherArms, TheBestOfUnequalNumbersIsThatOfEquallyMany) {
  Random random(1, "validations");
  std::string table = "arm,seed,step,val_loss\n";
  for (const auto& [arm, count] : {std::pair{"a", 10}, {"b", 200}}) {
    for (int seed = 0; seed < 5; ++seed) {
      for (int i = 1; i <= count; ++i)
        table += fmt::format("{},{},{},{}\n", arm, seed, i * (2000 / count), 2 + 0.05 * random.normal());
    }
  }
  const RunArms arms = gathered("", file("t.csv", table), {.metric = "val_loss", .at = "best"});
  ASSERT_EQ(arms.runs.size(), 10U);
  for (const ReadRun& run : arms.runs) {
    EXPECT_EQ(run.points, 10);
    EXPECT_EQ(run.last_step, 2000);
  }
  EXPECT_EQ(notes_in(arms, "runs have 10 to 200 values of val_loss").size(), 1U);
  // Nearly as many are left as they are, and at the end all count.
  EXPECT_EQ(gathered("", file("t.csv", table), {.metric = "val_loss"}).runs[9].points, 200);
  const std::string few = "seed,step,loss\n0,1,3\n0,2,1\n0,3,2\n1,1,3\n1,2,2\n1,3,NaN\n1,4,NaN\n";
  EXPECT_EQ(runs_in(gathered("a", file("f.csv", few), {.at = "best"})), "a 0 3 3 1; a 1 4 4 2");
}

// trackio's names repeat, and its run ids do not; the steps of a run may follow those of another.
TEST_F(GatherArms, RunIdsTellRunsOfOneNameApart) {
  for (const int shift : {0, 100}) {
    std::string lines;
    for (int run = 0; run < 6; ++run) {
      for (int step = 0; step < 3; ++step)
        lines += fmt::format("{{\"run_id\": \"r{}\", \"run_name\": \"{}\", \"step\": {}, \"loss\": {}}}\n", run,
                             run < 3 ? "base" : "wide", step + shift * run, 3 - step + run);
    }
    const RunArms arms = gathered("", file("t.jsonl", lines), {.by = {"run_name"}});
    ASSERT_EQ(arms.arms.size(), 2U);
    EXPECT_EQ(arms.arms[1].name, "wide");
    EXPECT_EQ(arms.arms[1].sweep.points[0].losses, (std::vector<double>{4, 5, 6}));
  }
}

// What W&B and MLflow export of several runs: a line is a run, though it says how many steps that had.
TEST_F(GatherArms, TablesOfRuns) {
  const std::string wandb =
      "\"Name\",\"State\",\"Created\",\"optimizer\",\"train/global_step\",\"eval/loss\"\n"
      "swift-fox-1,finished,2026-01-01,adamw,4980,2.5\ncalm-owl-2,finished,2026-01-02,adamw,5000,2.25\n"
      "red-ant-4,finished,2026-01-03,muon,5000,2.125\nold-dog-7,crashed,2026-01-04,muon,120,6.5\n"
      "new-cat-8,running,2026-01-05,muon,4000,3\n";
  const char* expected =
      "adamw – 1 4980 finished 2.5; adamw – 1 5000 finished 2.25; muon – 1 5000 finished 2.125; "
      "muon – 1 120 failed (crashed) nan; muon – 1 4000 not ended (running) 3";
  for (const char* name : {"Name", "Run Name", "ID", "name"}) {
    std::string table = wandb;
    table.replace(1, 4, name);
    EXPECT_EQ(runs_in(gathered("", file("w.csv", table), {.metric = "eval/loss", .by = {"optimizer"}})), expected)
        << name;
  }
  const std::string mlflow =
      "run_id,status,params.optimizer,params.seed,params.steps,metrics.loss\naa1,FINISHED,adamw,0,5000,2.5\n"
      "aa2,FINISHED,adamw,1,5000,2.25\nbb1,FINISHED,muon,0,5000,2.125\nbb4,FAILED,muon,3,5000,6.5\n";
  EXPECT_EQ(runs_in(gathered("", file("m.csv", mlflow), {.metric = "loss"})),
            "adamw 0 1 5000 FINISHED 2.5; adamw 1 1 5000 FINISHED 2.25; muon 0 1 5000 FINISHED 2.125; "
            "muon 3 1 5000 failed (FAILED) nan");
  // Without steps, and in the lines of one run: its last state counts.
  EXPECT_EQ(runs_in(gathered("a", file("s.tsv", "commit\tloss\tstatus\nabc\t1.5\tkeep\ndef\t0\tOOM (8 GB)\n"))),
            "a – 1 0 keep 1.5; a – 1 0 failed (OOM (8 GB)) nan");
  EXPECT_EQ(runs_in(gathered("a", file("l.csv", "step,status,loss\n1,running,3\n2,running,2\n3,failed,1\n"))),
            "a – 3 3 failed nan");
}

/// Five seeds of each arm around 2 − gain; the standard error of a gain is 0.01.
std::string table_of(const std::vector<std::pair<std::string, double>>& gains) {
  std::string table = "arm,seed,loss\n";
  const std::vector<double> noise = {0.02, -0.01, 0.0, 0.01, -0.02};
  for (const auto& [arm, gain] : gains) {
    for (size_t seed = 0; seed < noise.size(); ++seed)
      table += arm + "," + std::to_string(seed) + "," + std::to_string(2 - gain + noise[seed]) + "\n";
  }
  return table;
}

// A gain of 2.05 standard errors is one at 5% (1.86 of them), but not at 2.5% (2.31).
TEST_F(GatherArms, SeveralArmsShareTheError) {
  const auto outcomes = [&](const std::vector<std::pair<std::string, double>>& gains) {
    std::string text;
    for (const JudgedPair& pair : judge_arms(gathered("", file("t.csv", table_of(gains))), {}).pairs)
      text += pair.arm + " " + pair.outcome + (pair.reason.empty() ? "" : " (" + pair.reason + ")") + "; ";
    return text;
  };
  EXPECT_EQ(outcomes({{"base", 0}, {"near", 0.0205}}), "near supported; ");
  EXPECT_EQ(outcomes({{"base", 0}, {"near", 0.0205}, {"also", 0.0205}}),
            "near undecided (supported by itself, but not among 2 comparisons); "
            "also undecided (supported by itself, but not among 2 comparisons); ");
  // One that stands leaves the whole error to the other.
  EXPECT_EQ(outcomes({{"base", 0}, {"near", 0.0205}, {"far", 0.1}}), "near supported; far supported; ");
}

// The interval is that from which the verdict was read: Student's t at 0.975 or 0.95, 8 degrees, times 0.01.
TEST_F(GatherArms, IntervalsAreThoseOfTheSharedError) {
  const auto pairs = [&](const std::vector<std::pair<std::string, double>>& gains) {
    return judge_arms(gathered("", file("t.csv", table_of(gains))), {}).pairs;
  };
  for (const JudgedPair& pair : pairs({{"base", 0}, {"near", 0.0205}, {"also", 0.0205}})) {
    EXPECT_DOUBLE_EQ(pair.confidence, 0.95);
    EXPECT_NEAR(pair.gain.low, 0.0205 - 0.0230600, 1e-6);
    EXPECT_NEAR(pair.gain.high, 0.0205 + 0.0230600, 1e-6);
    EXPECT_EQ(pair.seeds_needed, 11);  // (t(0.975) + t(0.8)) · 0.0158 · √(2/n) ≤ 0.0205 with 2n − 2 degrees
  }
  const std::vector<JudgedPair> apart = pairs({{"base", 0}, {"near", 0.0205}, {"far", 0.1}});
  EXPECT_DOUBLE_EQ(apart[0].confidence, 0.9);
  EXPECT_NEAR(apart[0].gain.low, 0.0205 - 0.0185955, 1e-6);
  EXPECT_DOUBLE_EQ(apart[1].confidence, 0.95);
  EXPECT_NEAR(apart[1].gain.low, 0.1 - 0.0230600, 1e-6);
}

}  // namespace
}  // namespace plumb
