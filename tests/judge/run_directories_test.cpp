// Runs and arms in directories, as programs lay them out.
#include <tuple>

#include "plumb/base/json.h"
#include "run_files.h"
#include "support/logs_of_programs.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using test::expect_refused;
using test::gathered;
using test::golden_run;
using test::notes_in;
using test::runs_in;
using test::write_curve;

class RunDirectories : public test::RunFiles {};

// A table of packages, a damaged log, or notes among the runs: they are named, and the rest is judged.
TEST_F(RunDirectories, OfADirectoryWhatCannotBeReadIsLeftOutAndNamed) {
  for (const char* arm : {"a", "b"}) {
    for (const char* seed : {"1", "2", "3"})
      (void)file(std::string(arm) + "/" + seed + ".csv", "step,loss\n1," + std::string(seed) + "\n");
  }
  (void)file("a/notes.csv", "this is, a text\nwith one, two, and three commas\n");
  (void)file("b/cut.jsonl", "{\"loss\": 1}\n{\"lo");
  const std::string folder = folder_.path().string();
  const RunArms arms = gather_arms(arm_places({"a=" + folder + "/a", "b=" + folder + "/b"}), {.metric = "loss"});
  ASSERT_EQ(arms.arms.size(), 2U);
  EXPECT_EQ(arms.arms[0].sweep.points[0].losses.size(), 3U);
  EXPECT_EQ(arms.arms[1].sweep.points[0].losses.size(), 3U);
  ASSERT_EQ(arms.notes.size(), 2U);
  EXPECT_CONTAINS(arms.notes[0], "left out: " + folder + "/a/notes.csv, record 2");
  EXPECT_CONTAINS(arms.notes[1], "left out: " + folder + "/b/cut.jsonl, line 2");
  for (const char* seed : {"1", "2", "3"}) fs::remove(folder_ / "a" / (std::string(seed) + ".csv"));
  test::expect_error([&] { read_run_records(folder_ / "a"); }, "notes.csv, record 2");
}

TEST_F(RunDirectories, EventFilesThatAreDamagedAreLeftOutAndNamed) {
  std::string events = read_file(golden_run("tensorboard/base-1/events.out.tfevents.0"));
  for (const char* run : {"good", "bad"}) {
    (void)file(std::string(run) + "/events.out.tfevents.0", events);
    events[events.size() - 20] ^= 1;
  }
  std::vector<std::string> notes;
  EXPECT_EQ(read_run_records(folder_.path(), {}, &notes).size(), 1U);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_CONTAINS(notes[0], "bad/events.out.tfevents.0");
}

// Keras writes train/ and validation/ for each run, an estimator eval/ below the run's own files.
TEST_F(RunDirectories, DirectoriesOfTrainingAndValidationAreOneRun) {
  for (const std::string arm : {"a", "b"}) {
    for (const std::string seed : {"0", "1", "2"}) {
      write_curve(folder_ / "keras" / arm / seed / "train", "epoch_loss", 0, 200, 1);
      write_curve(folder_ / "keras" / arm / seed / "validation", "epoch_loss", 0, 200, 2);
      write_curve(folder_ / "estimator" / arm / seed, "epoch_loss", 0, 200, 1);
      write_curve(folder_ / "estimator" / arm / seed / "eval", "epoch_loss", 0, 200, 2);
    }
  }
  for (const auto& [layout, part, names] :
       {std::tuple{"keras", "validation", "train, validation"}, {"estimator", "eval", "., eval"}}) {
    const std::string base = (folder_ / layout).string();
    const auto gather = [&](const ArmOptions& options) {
      return gather_arms({{"a", base + "/a"}, {"b", base + "/b"}}, options);
    };
    test::expect_error([&] { gather({.metric = "epoch_loss"}); },
                       base + "/a/0: the directories " + names + " are parts of one run");
    const RunArms arms = gather({.metric = "epoch_loss", .where = {{"part", part}}});
    ASSERT_EQ(arms.runs.size(), 6U) << layout;
    EXPECT_EQ(arms.runs[0].value, 2 + 4 - 200 / 128.0) << layout;
    EXPECT_EQ(arms.arms[1].sweep.points[0].losses.size(), 3U);
  }
  // A pattern says it, too.
  const std::string pattern = (folder_ / "keras" / "a" / "*" / "validation").string();
  EXPECT_EQ(gather_arms(arm_places({"a=" + pattern}), {.metric = "epoch_loss"}).runs.size(), 3U);
}

// add_scalars("loss", {"train": …, "valid": …}) makes a directory of each curve.
TEST_F(RunDirectories, CurvesOfAddScalarsBelongToTheirRun) {
  for (const std::string seed : {"0", "1", "2"}) {
    const fs::path run = folder_ / "a" / seed;
    write_curve(run, "lr/now", 0, 200, 0);
    write_curve(run / "eval_loss_train", "eval/loss", 0, 200, 1);
    write_curve(run / "eval_loss_valid", "eval/loss", 0, 200, 2);
  }
  const std::vector<RunRecord> runs = read_run_records(folder_ / "a");
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].series.size(), 3U);
  EXPECT_EQ(runs[0].series.at("eval/loss/valid").size(), 3U);
  EXPECT_EQ(gathered("a", folder_ / "a", {.metric = "eval/loss/valid"}).runs[0].points, 3);
}

// Lightning goes on in version_1, Trainer in a directory of another date.
TEST_F(RunDirectories, ARunThatWentOnInASecondDirectoryIsOne) {
  const auto table = [&](const std::string& name, int first, int last, double level) {
    std::string text = "epoch,step,val_loss\n";
    for (int step = first; step <= last; step += 100) text += fmt::format("0,{},{}\n", step, level + 1000 - step);
    (void)file(name, text);
  };
  for (const int seed : {0, 1, 2}) {
    table(fmt::format("a/{}/version_0/metrics.csv", seed), 0, seed == 1 ? 400 : 1000, 2 + seed);
    write_curve(folder_ / fmt::format("t/{}/runs/Jan01", seed), "eval/loss", 0, seed == 1 ? 450 : 1000, 2 + seed);
  }
  table("a/1/version_1/metrics.csv", 500, 700, 3);
  table("a/1/version_2/metrics.csv", 600, 1000, 3);  // from the last checkpoint, before the end
  write_curve(folder_ / "t/1/runs/Jan02", "eval/loss", 500, 1000, 3);
  const RunArms tables = gathered("a", folder_ / "a", {.metric = "val_loss"});
  EXPECT_EQ(runs_in(tables), "a – 11 1000 2; a – 11 1000 3; a – 11 1000 4");
  EXPECT_EQ(notes_in(tables, "goes on at step").size(), 2U);
  EXPECT_CONTAINS(notes_in(tables, "goes on at step 500").at(0), "1/version_1/metrics.csv: one run");
  const RunArms events = gathered("t", folder_ / "t", {.metric = "eval/loss"});
  ASSERT_EQ(events.runs.size(), 3U);
  EXPECT_EQ(events.runs[1].points, 11);
  // Which of two runs it continues is not guessed; runs that begin late alike are no fragments.
  table("b/version_0/metrics.csv", 0, 1000, 1);
  table("b/version_1/metrics.csv", 0, 1000, 2);
  table("b/version_2/metrics.csv", 500, 1500, 3);
  test::expect_error([&] { gathered("b", folder_ / "b", {.metric = "val_loss"}); },
                     "version_2/metrics.csv begins at step 500: which run beside it does it continue?");
  table("c/version_0/metrics.csv", 500, 1000, 1);
  table("c/version_1/metrics.csv", 500, 1500, 2);
  EXPECT_EQ(gathered("c", folder_ / "c", {.metric = "val_loss"}).runs.size(), 2U);
}

// A run of transformers' Trainer that was killed leaves its checkpoints, and no file above them.
TEST_F(RunDirectories, OfTrainersCheckpointsTheNewestCounts) {
  const auto state = [&](const std::string& name, int last) {
    Json log = Json::array();
    for (int step = 100; step <= last; step += 100) log.push_back({{"step", step}, {"eval_loss", 1000 - step}});
    (void)file(name, Json{{"log_history", log}}.dump());
  };
  for (const char* run : {"killed", "whole"}) {
    for (const int step : {500, 900, 1000}) state(fmt::format("{}/checkpoint-{}/trainer_state.json", run, step), step);
  }
  state("whole/trainer_state.json", 1100);
  EXPECT_EQ(runs_in(gathered("a", folder_.path())), "a – 10 1000 checkpoint-1000 0; a – 11 1100 -100");
  EXPECT_EQ(read_run_records(folder_ / "killed" / "checkpoint-500")[0].series.at("eval_loss").size(), 5U);
}

TEST_F(RunDirectories, ArmsOfNamesThatDifferInALastNumber) {
  for (const std::string name : {"base-s1", "base-s2", "lr2x-s1", "lr2x-s2", "wide-s1"}) {
    (void)file("csv/" + name + ".csv", "step,loss\n1,3\n2,2\n");
    write_curve(folder_ / "tb" / name, "loss", 0, 200, 1);
  }
  for (const char* place : {"csv", "tb"}) {
    const RunArms arms = gathered("", folder_ / place, {.metric = "loss"});
    ASSERT_EQ(arms.arms.size(), 3U) << place;
    EXPECT_EQ(arms.arms[0].name, "base");
    EXPECT_EQ(arms.arms[1].name, "lr2x");
    EXPECT_EQ(arms.arms[1].sweep.points[0].losses.size(), 2U);
    EXPECT_EQ(notes_in(arms, "arms are those of the runs' names").size(), 1U);
  }
  const std::string rows = "step,run,loss\n1,base_seed1,3\n1,base_seed2,3.5\n1,wide_seed1,2\n";
  EXPECT_EQ(gathered("", file("t.csv", rows)).arms.at(1).name, "wide");
  // Names without a number, or with another one for each, say nothing.
  for (const char* names : {"1,a1,3\n1,a2,3\n1,b,2\n", "1,swift-fox-1,3\n1,calm-owl-2,3\n"})
    expect_refused("", file("n.csv", std::string("step,run,loss\n") + names), {},
                   "no setting but seed and learning rate tells the runs apart");
}

TEST_F(RunDirectories, NoPlaceLiesWithinAnother) {
  (void)file("runs/1.csv", "step,loss\n1,3\n");
  const std::string inner = file("runs/new/2.csv", "step,loss\n1,3\n");
  const std::string runs = (folder_ / "runs").string();
  for (const std::string& within : {runs + "/new", inner})
    test::expect_error([&] { gather_arms({{"all", runs}, {"new", within}}, {}); }, within + " lies within " + runs);
  EXPECT_EQ(gather_arms({{"all", runs + "/1.csv"}, {"new", inner}}, {}).runs.size(), 2U);
}

}  // namespace
}  // namespace plumb
