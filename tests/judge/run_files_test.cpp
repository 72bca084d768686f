// Runs and arms from files as programs and people write them, and from damaged ones.
#include "plumb/base/input.h"
#include "plumb/judge/arms.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "plumb/base/files.h"
#include "plumb/base/json.h"
#include "plumb/base/random.h"
#include "plumb/judge/judge.h"
#include "plumb/judge/run_record.h"
#include "plumb/report/tensorboard.h"
#include "plumb/run/metrics_file.h"
#include "plumb/run/point.h"
#include "support/errors.h"
#include "support/logs_of_programs.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using test::golden_run;

class RunFiles : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) {
    write_file_atomic(folder_.path() / name, content);
    return (folder_.path() / name).string();
  }
  test::TemporaryDirectory folder_;
};

TEST_F(RunFiles, ALineIsARunUnlessThereAreSteps) {
  EXPECT_EQ(read_run_records(file("runs.csv", "seed,loss\n1,2.5\n2,nan\n")).size(), 2U);
  const std::vector<RunRecord> points =
      read_run_records(file("points.jsonl",
                            "{\"run\": \"a\", \"step\": 1, \"m\": {\"loss\": 3}}\n{\"run\": \"b\", \"step\": 1, \"m\": "
                            "{\"loss\": 4}}\n{\"run\": \"a\", \"step\": 2, \"m\": {\"loss\": 2}}\n"));
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].series.at("m.loss").size(), 2U);
  EXPECT_EQ(points[0].series.at("m.loss")[1].value, 2);
}

TEST_F(RunFiles, CellsWithoutAValue) {
  const std::vector<RunRecord> runs =
      read_run_records(file("runs.csv", "seed,loss,note\n1, 2.5 ,None\n2,N/A,-\n3,-inf,x\n"));
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].series.at("loss")[0].value, 2.5);
  EXPECT_EQ(runs[0].setting("note"), nullptr);
  EXPECT_FALSE(runs[1].series.contains("loss"));
  EXPECT_TRUE(std::isinf(runs[2].series.at("loss")[0].value));
}

// What is said at the end of a run, or in some of its lines, does not make it two.
TEST_F(RunFiles, RemarksAndKindsOfLines) {
  const std::string remarks = file(
      "remarks.jsonl",
      "{\"step\": 1, \"loss\": 3}\n{\"step\": 2, \"loss\": 2}\n{\"step\": 3, \"loss\": 1, \"status\": \"finished\"}\n");
  const std::vector<RunRecord> runs = read_run_records(remarks);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].series.at("loss").size(), 3U);
  const std::string kinds =
      file("kinds.jsonl",
           "{\"step\": 1, \"split\": \"train\", \"loss\": 3}\n{\"step\": 1, \"split\": \"valid\", "
           "\"loss\": 4}\n{\"step\": 2, \"split\": \"train\", \"loss\": 2}\n{\"step\": 2, "
           "\"split\": \"valid\", \"loss\": 3}\n");
  test::expect_error([&] { read_run_records(kinds); }, "several kinds, by \"split\"");
  EXPECT_EQ(read_run_records(kinds, {{"split"}}).size(), 2U);
}

// A run whose last validation loss is not a number has failed, although an earlier one was measured.
TEST_F(RunFiles, PlumbsRunsEndWithTheirLastValueEvenIfItIsNaN) {
  for (const auto& [name, last] : {std::pair{"stays", 2.25}, {"ends", std::nan("")}}) {
    fs::create_directories(folder_.path() / name);
    std::vector<TrainPoint> history(2);
    for (TrainPoint& point : history) {
      point.step = 10 * (&point - history.data() + 1);
      point.metrics.set("valid_loss", point.step == 10 ? 2.5 : last);
    }
    MetricsFile(folder_.path() / name / "metrics.jsonl", history, {}, {});
    (void)file(std::string(name) + "/plumb.json", "{\"kind\": \"run\"}");
  }
  const std::string ends = (folder_.path() / "ends").string(), stays = (folder_.path() / "stays").string();
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
TEST_F(RunFiles, PlumbsFailedRunsCountWithAtMostTheLabelsFrequencies) {
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

TEST_F(RunFiles, WhatIsDamagedInPlumbsRunsIsNamed) {
  for (const char* name : {"whole", "damaged"}) {
    fs::create_directories(folder_ / name);
    TrainPoint point;
    point.metrics.set("valid_loss", 5);
    MetricsFile(folder_ / name / "metrics.jsonl", {point}, {}, {});
    (void)file(std::string(name) + "/plumb.json", "{\"kind\": \"run\"}");
    (void)file(std::string(name) + "/config.toml", "[model]\ntarget_vocabulary = 1000\n");
  }
  const fs::path history = folder_ / "damaged" / "metrics.jsonl";
  const std::string whole = read_file(history);
  write_file_atomic(history, whole + "\x01\x02\n" + whole);
  const std::vector<std::string> notes = gather_arms({{"a", folder_ / "whole"}, {"b", folder_ / "damaged"}}, {}).notes;
  ASSERT_FALSE(notes.empty());
  const auto damaged_line = 1 + std::count(whole.begin(), whole.end(), '\n');
  EXPECT_CONTAINS(notes[0], fmt::format("{}: line {}", history.string(), damaged_line));
}

TEST_F(RunFiles, RunsThatAreUnlikeAreSaidToBe) {
  for (const auto& [name, vocabulary] : {std::pair{"small", 1000}, {"large", 8000}}) {
    fs::create_directories(folder_.path() / name);
    TrainPoint point;
    point.metrics.set("valid_loss", 5);
    MetricsFile(folder_.path() / name / "metrics.jsonl", {point}, {}, {});
    (void)file(std::string(name) + "/plumb.json", "{\"kind\": \"run\"}");
    (void)file(std::string(name) + "/config.toml", "[model]\ntarget_vocabulary = " + std::to_string(vocabulary) + "\n");
  }
  const std::string small = (folder_.path() / "small").string(), large = (folder_.path() / "large").string();
  EXPECT_EQ(gather_arms({{"small", small}, {"large", large}}, {}).notes,
            (std::vector<std::string>{"2 of 2 runs have not ended; their last values are compared",
                                      "vocabularies of 1000 to 8000 tokens: a token is not the same for all runs, so "
                                      "their losses per token differ"}));
  (void)file("small/result.json", TrainResult{.steps = 1}.to_json().dump());
  EXPECT_EQ(gather_arms({{"small", small}}, {}).notes, std::vector<std::string>{});
  test::expect_error([&] { gather_arms({{"a", small}, {"b", small + "/"}}, {}); }, "small/: is named twice");
}

// A table of packages, a damaged log, or notes among the runs: they are named, and the rest is judged.
TEST_F(RunFiles, OfADirectoryWhatCannotBeReadIsLeftOutAndNamed) {
  for (const char* arm : {"a", "b"}) {
    for (const char* seed : {"1", "2", "3"}) {
      fs::create_directories(folder_.path() / arm);
      (void)file(std::string(arm) + "/" + seed + ".csv", "step,loss\n1," + std::string(seed) + "\n");
    }
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
  for (const char* seed : {"1", "2", "3"}) fs::remove(folder_.path() / "a" / (std::string(seed) + ".csv"));
  test::expect_error([&] { read_run_records(folder_.path() / "a"); }, "notes.csv, record 2");
}

TEST_F(RunFiles, EventFilesThatAreDamagedAreLeftOutAndNamed) {
  std::string events = read_file(golden_run("tensorboard/base-1/events.out.tfevents.0"));
  for (const char* run : {"good", "bad"}) {
    fs::create_directories(folder_.path() / run);
    (void)file(std::string(run) + "/events.out.tfevents.0", events);
    events[events.size() - 20] ^= 1;
  }
  std::vector<std::string> notes;
  EXPECT_EQ(read_run_records(folder_.path(), {}, notes).size(), 1U);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_CONTAINS(notes[0], "bad/events.out.tfevents.0");
}

// What judge is given may be anything.
TEST_F(RunFiles, PipesDevicesAndEndlessFilesAreRefused) {
  for (const char* kind : {"csv", "tsv", "jsonl", "ndjson", "json"}) {
    const fs::path place = folder_.path() / (std::string("log.") + kind);
    ASSERT_EQ(::mkfifo(place.c_str(), 0600), 0);
    test::expect_error([&] { read_run_records(place); }, "is a pipe");
    fs::remove(place);
    fs::create_symlink("/dev/zero", place);
    test::expect_error([&] { read_run_records(place); }, "is a device");
    fs::remove(place);
    write_file_atomic(place, " ");
    fs::resize_file(place, (uint64_t{1} << 30) + 1);  // without its content on the disk
    test::expect_error([&] { read_run_records(place); }, std::string("log.") + kind);
    fs::remove(place);
  }
  const fs::path events = folder_.path() / "events.out.tfevents.1";
  write_file_atomic(events, std::string(8, '\0'));
  fs::resize_file(events, uint64_t{1} << 30);
  test::expect_error([&] { read_run_records(events); }, "wrong checksum");
}

TEST_F(RunFiles, TablesOfTooManyRunsAreRefused) {
  std::string table = "loss\n", points = "step,seed,loss\n", columns;
  for (int i = 0; i <= 100'000; ++i) {
    table += "1\n";
    points += "1," + std::to_string(i) + ",1\n";
    columns += "{\"c" + std::to_string(i) + "\":1}\n";
  }
  test::expect_error([&] { read_run_records(file("t.csv", table)); }, "t.csv: has more than 100000 columns or runs");
  test::expect_error([&] { read_run_records(file("p.csv", points)); }, "p.csv: has more than 100000 columns or runs");
  test::expect_error([&] { read_run_records(file("c.jsonl", columns)); },
                     "c.jsonl: has more than 100000 columns or runs");
}

TEST_F(RunFiles, DamageIsNamed) {
  test::expect_error([&] { read_run_records(file("short.csv", "a,b\n1\n")); }, "record 2");
  test::expect_error([&] { read_run_records(file("x.jsonl", "{\"a\": 1}\n[1]\n")); }, "line 2");
  test::expect_error([&] { read_run_records(file("x.json", "{}")); }, "log_history");
  test::expect_error([&] { read_run_records(file("x.txt", "")); }, "no runs");
  std::string events = read_file(golden_run("tensorboard/base-1/events.out.tfevents.0"));
  const std::vector<RunRecord> cut =
      read_run_records(file("events.out.tfevents.0", events.substr(0, events.size() - 3)));
  EXPECT_EQ(cut[0].series.at("loss/again").size(), 3U);
  events[events.size() - 20] ^= 1;
  test::expect_error([&] { read_run_records(file("events.out.tfevents.0", events)); }, "wrong checksum");
}

/// Which arms are found, with their means: "base 3.28125, wide 3.1".
std::string arms_in(const std::vector<std::string>& places, const ArmOptions& options) {
  std::string text;
  for (const JudgedArm& arm : judge_arms(gather_arms(arm_places(places), options), {}).arms)
    text += (text.empty() ? "" : ", ") + arm.name + " " + std::to_string(arm.runs) + " " + std::to_string(arm.mean);
  return text;
}

// At step 300: 4 − 0.75 + 2/64, and 0.1875 less.
constexpr const char* kArms = "base 3 3.281250, wide 3 3.093750";

TEST(GatherArms, FindsWhatDiffers) {
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

TEST_F(RunFiles, BestRatesAreCompared) {
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
  const ArmVerdicts verdicts = judge_arms(gather_arms({{"", name}}, {}), {});
  EXPECT_EQ(verdicts.arms[0].learning_rate, 2e-3);
  EXPECT_EQ(verdicts.arms[0].rates, 3);
  EXPECT_EQ(verdicts.pairs[0].outcome, "supported");
  // Without the fastest rate, the best one is at an end.
  const ArmVerdicts open =
      judge_arms(gather_arms({{"", file("open.csv", table)}}, {.by = {"lr"}, .where = {{"arm", "a"}}}), {});
  EXPECT_EQ(open.pairs.size(), 2U);  // rates that are arms are no sweep
  std::string two = "arm,lr,seed,loss\n";
  for (size_t begin = two.size(); begin < table.size(); begin = table.find('\n', begin) + 1) {
    const std::string line = table.substr(begin, table.find('\n', begin) + 1 - begin);
    if (line.find("3e-3") == std::string::npos) two += line;
  }
  const ArmVerdicts ends = judge_arms(gather_arms({{"", file("two.csv", two)}}, {}), {});
  EXPECT_EQ(ends.pairs[0].outcome, "undecided");
  EXPECT_CONTAINS(ends.pairs[0].reason, "largest of the sweep");
}

TEST_F(RunFiles, WhatIsNotClearIsAsked) {
  const std::string runs = file("runs.csv", "a,b,seed,loss,speed\nx,p,1,2,3\ny,q,1,2,3\n");
  const auto gather = [&](const ArmOptions& options) { return [=] { gather_arms({{"", runs}}, options); }; };
  test::expect_error(gather({}), "The runs differ in: a, b");
  test::expect_error(gather({.metric = "speed", .by = {"a"}}), "is more of \"speed\" better");
  test::expect_error(gather({.metric = "los", .by = {"a"}}), "no common metric");
  test::expect_error(gather({.by = {"c"}}), "no run has a setting \"c\"");
  test::expect_error(
      [&] {
        gather_arms({{"", file("twice.csv", "arm,seed,loss\na,1,2\nb,1,2\na,1,3\n")}}, {});
      },
      "another run with the seed 1");
  test::expect_error([&] { judge_arms(gather_arms({{"a", runs}}, {}), {}); }, "another run with the seed");
  const RunArms arms = gather_arms({{"", runs}}, {.by = {"a"}});
  test::expect_error([&] { judge_arms(arms, {}, "last", "z"); }, "no arm is called \"z\"");
  EXPECT_EQ(judge_arms(arms, {.by_seed = true}).pairs[0].outcome, "undecided");
}

// Logs as people have them: none of these may be taken for several runs, or several of them for one.
TEST_F(RunFiles, LogsOfManyPrograms) {
  const auto runs = [&](const std::string& name, const std::string& text) {
    return read_run_records(file(name, text)).size();
  };
  EXPECT_EQ(runs("tb.csv", "Wall time,Step,Value\n1,10,2.5\n2,20,2.4\n"), 1U);
  EXPECT_EQ(runs("nano.jsonl", "{\"iter\": 0, \"loss\": 3}\n{\"iter\": 10, \"loss\": NaN}\n"), 1U);
  EXPECT_EQ(runs("fast.csv", "epoch,train_loss,time\n0,3,00:10\n1,2,00:11\n2,1,00:10\n3,1,00:10\n"), 1U);
  EXPECT_EQ(runs("best.jsonl", "{\"step\": 0, \"is_best\": true}\n{\"step\": 1, \"is_best\": false}\n"), 1U);
  test::expect_error(
      [&] {
        gather_arms({{"a", file("lr.csv", "step,seed,lr,loss\n0,1,0.1,3\n1,1,0.1,2\n0,1,0.2,4\n1,1,0.2,3\n")}}, {});
      },
      "two values of loss at step 0");
  EXPECT_TRUE(
      gather_arms({{"a", file("f.csv", "flowers_acc,seed\n1,1\n")}}, {.metric = "flowers_acc"}).larger_is_better);
  test::expect_error(
      [&] {
        gather_arms({{"a", file("s.csv", "tokens_per_second,seed\n1,1\n")}}, {.metric = "tokens_per_second"});
      },
      "better, or less");
}

/// Writes a curve that falls to a level: a value every 100 steps.
void write_curve(const fs::path& directory, const std::string& tag, int first, int last, double level) {
  EventWriter writer(directory);
  for (int step = first; step <= last; step += 100) writer.scalar(tag, step, level + 4 - step / 128.0, 1);
}

/// Of each run that was read its arm, seed, points, last step, state and value: "a 0 3 200 finished 2.5".
std::string runs_in(const RunArms& arms) {
  std::string text;
  for (const ReadRun& run : arms.runs)
    text += fmt::format("{}{} {} {} {:g} {}{:g}", text.empty() ? "" : "; ", run.arm, run.seed.empty() ? "–" : run.seed,
                        run.points, run.last_step, run.state.empty() ? "" : run.state + " ", run.value);
  return text;
}

std::vector<std::string> notes_in(const RunArms& arms, const std::string& part) {
  std::vector<std::string> notes = arms.notes;
  std::erase_if(notes, [&](const std::string& note) { return note.find(part) == std::string::npos; });
  return notes;
}

// Keras writes train/ and validation/ for each run, an estimator eval/ below the run's own files.
// Files whose names say nothing, in directories: what their lines are decides.
TEST_F(RunFiles, TablesAreKnownByTheirLines) {
  const auto last = [&](const std::string& name, const std::string& text, const std::string& metric) {
    const test::TemporaryDirectory run;
    write_file_atomic(run.path() / "requirements.txt", "torch\nnumpy\n");
    write_file_atomic(run.path() / "config.json", R"({"seed": 1, "lr": 0.001})");
    write_file_atomic(run.path() / name, text);
    const std::vector<RunRecord> runs = read_run_records(run.path());
    if (runs.size() != 1) return -static_cast<double>(runs.size());
    const auto found = runs[0].series.find(metric);
    return found == runs[0].series.end() ? -100 : found->second.back().value;
  };
  // Keras, DeiT, detectron2, MMEngine, Ray, fairseq, YOLO.
  EXPECT_EQ(last("training.log", "epoch,loss,val_loss\n0,3.1,3.2\n1,2.1,2.2\n", "val_loss"), 2.2);
  EXPECT_EQ(last("log.txt", "{\"test_loss\": 3, \"epoch\": 0}\n{\"test_loss\": 2, \"epoch\": 1}\n", "test_loss"), 2);
  EXPECT_EQ(last("metrics.json",
                 "{\"iteration\": 19, \"total_loss\": 3}\n{\"iteration\": 39, \"total_loss\": 2}\n"
                 "{\"bbox/AP\": 40.5, \"iteration\": 39}\n",
                 "bbox/AP"),
            40.5);
  EXPECT_EQ(
      last("scalars.json", "{\"loss\": 3, \"step\": 50}\n{\"accuracy/top1\": 51.5, \"step\": 1}\n", "accuracy/top1"),
      51.5);
  EXPECT_EQ(last("result.json",
                 "{\"training_iteration\": 1, \"loss\": 3, \"config\": {\"lr\": 0.1}}\n"
                 "{\"training_iteration\": 2, \"loss\": 2, \"config\": {\"lr\": 0.1}}\n",
                 "loss"),
            2);
  EXPECT_EQ(last("train.log",
                 "2024-01-01 | INFO | fairseq_cli.train | Namespace(seed=1)\n"
                 "2024-01-01 | INFO | fairseq_cli.train | training on 1 device\n"
                 "2024-01-01 | INFO | valid | {\"epoch\": 1, \"valid_loss\": \"3.5\"}\n"
                 "2024-01-01 | INFO | valid | {\"epoch\": 2, \"valid_loss\": \"2.5\"}\n",
                 "valid_loss"),
            2.5);
  EXPECT_EQ(last("results.csv", "   epoch,   val/box_loss\n       0,    3.5\n       1,    2.5\n", "val/box_loss"), 2.5);
  // Results of one run are read where they are named.
  const std::string results = file("all_results.json", "{\n \"epoch\": 3.0,\n \"eval_loss\": 2.5\n}");
  EXPECT_EQ(read_run_records(results)[0].series.at("eval_loss")[0].value, 2.5);
  test::expect_error([&] { read_run_records(folder_.path()); }, "no runs");
}

TEST_F(RunFiles, DirectoriesOfTrainingAndValidationAreOneRun) {
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
TEST_F(RunFiles, CurvesOfAddScalarsBelongToTheirRun) {
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
  EXPECT_EQ(gather_arms({{"a", folder_ / "a"}}, {.metric = "eval/loss/valid"}).runs[0].points, 3);
}

// Lightning goes on in version_1, Trainer in a directory of another date.
TEST_F(RunFiles, ARunThatWentOnInASecondDirectoryIsOne) {
  const auto table = [&](const std::string& name, int first, int last, double level) {
    std::string text = "epoch,step,val_loss\n";
    for (int step = first; step <= last; step += 100) text += fmt::format("0,{},{}\n", step, level + 1000 - step);
    fs::create_directories((folder_ / name).parent_path());
    (void)file(name, text);
  };
  for (const int seed : {0, 1, 2}) {
    table(fmt::format("a/{}/version_0/metrics.csv", seed), 0, seed == 1 ? 400 : 1000, 2 + seed);
    write_curve(folder_ / fmt::format("t/{}/runs/Jan01", seed), "eval/loss", 0, seed == 1 ? 450 : 1000, 2 + seed);
  }
  table("a/1/version_1/metrics.csv", 500, 700, 3);
  table("a/1/version_2/metrics.csv", 600, 1000, 3);  // from the last checkpoint, before the end
  write_curve(folder_ / "t/1/runs/Jan02", "eval/loss", 500, 1000, 3);
  const RunArms tables = gather_arms({{"a", folder_ / "a"}}, {.metric = "val_loss"});
  EXPECT_EQ(runs_in(tables), "a – 11 1000 2; a – 11 1000 3; a – 11 1000 4");
  EXPECT_EQ(notes_in(tables, "goes on at step").size(), 2U);
  EXPECT_CONTAINS(notes_in(tables, "goes on at step 500").at(0), "1/version_1/metrics.csv: one run");
  const RunArms events = gather_arms({{"t", folder_ / "t"}}, {.metric = "eval/loss"});
  ASSERT_EQ(events.runs.size(), 3U);
  EXPECT_EQ(events.runs[1].points, 11);
  // Which of two runs it continues is not guessed; runs that begin late alike are no fragments.
  table("b/version_0/metrics.csv", 0, 1000, 1);
  table("b/version_1/metrics.csv", 0, 1000, 2);
  table("b/version_2/metrics.csv", 500, 1500, 3);
  test::expect_error(
      [&] {
        gather_arms({{"b", folder_ / "b"}}, {.metric = "val_loss"});
      },
      "version_2/metrics.csv begins at step 500: which run beside it does it continue?");
  table("c/version_0/metrics.csv", 500, 1000, 1);
  table("c/version_1/metrics.csv", 500, 1500, 2);
  EXPECT_EQ(gather_arms({{"c", folder_ / "c"}}, {.metric = "val_loss"}).runs.size(), 2U);
}

// A program that resumes a run adds to its log, from the last checkpoint on.
TEST_F(RunFiles, LinesThatRepeatStepsAreThoseOfAResumedRun) {
  const std::string once = "step,loss\n0,5\n100,4\n200,3\n300,2\n";
  const std::string again = file("again.csv", once + "200,3.5\n300,2.5\n400,1.5\n");
  const RunArms arms = gather_arms({{"a", again}}, {.metric = "loss"});
  EXPECT_EQ(runs_in(arms), "a – 5 400 1.5");
  EXPECT_EQ(notes_in(arms, "1 runs repeat steps").size(), 1U);
  EXPECT_EQ(gather_arms({{"a", again}}, {.metric = "loss", .at = "200"}).runs[0].value, 3.5);
  // Another run begins at the beginning, or at a step that this one did not have, or has a line beside each of it.
  for (const char* more : {"0,5.5\n100,4.5\n", "250,2.5\n", "100,4.5\n100,4.25\n100,4\n"})
    test::expect_error(
        [&] {
          gather_arms({{"a", file("two.csv", once + more)}}, {.metric = "loss"});
        },
        "two.csv: has two values of loss at step");
  test::expect_error(
      [&] {
        gather_arms({{"a", file("t.csv", "model,epoch,acc\nm1,7,0.81\nm2,9,0.80\nm3,8,0.82\n")}}, {.metric = "acc"});
      },
      "or goes back to it");
}

// The best of more values is lower by chance: equal arms of 10 and 200 validations with noise.
TEST_F(RunFiles, TheBestOfUnequalNumbersIsThatOfEquallyMany) {
  Random random(1, "validations");
  std::string table = "arm,seed,step,val_loss\n";
  for (const auto& [arm, count] : {std::pair{"a", 10}, {"b", 200}}) {
    for (int seed = 0; seed < 5; ++seed) {
      for (int i = 1; i <= count; ++i)
        table += fmt::format("{},{},{},{}\n", arm, seed, i * (2000 / count), 2 + 0.05 * random.normal());
    }
  }
  const RunArms arms = gather_arms({{"", file("t.csv", table)}}, {.metric = "val_loss", .at = "best"});
  ASSERT_EQ(arms.runs.size(), 10U);
  for (const ReadRun& run : arms.runs) {
    EXPECT_EQ(run.points, 10);
    EXPECT_EQ(run.last_step, 2000);
  }
  EXPECT_EQ(notes_in(arms, "runs have 10 to 200 values of val_loss").size(), 1U);
  // Nearly as many are left as they are, and at the end all count.
  EXPECT_EQ(gather_arms({{"", file("t.csv", table)}}, {.metric = "val_loss"}).runs[9].points, 200);
  const std::string few = "seed,step,loss\n0,1,3\n0,2,1\n0,3,2\n1,1,3\n1,2,2\n1,3,NaN\n1,4,NaN\n";
  EXPECT_EQ(runs_in(gather_arms({{"a", file("f.csv", few)}}, {.at = "best"})), "a 0 3 3 1; a 1 4 4 2");
}

// trackio's names repeat, and its run ids do not; the steps of a run may follow those of another.
TEST_F(RunFiles, RunIdsTellRunsOfOneNameApart) {
  for (const int shift : {0, 100}) {
    std::string lines;
    for (int run = 0; run < 6; ++run) {
      for (int step = 0; step < 3; ++step)
        lines += fmt::format("{{\"run_id\": \"r{}\", \"run_name\": \"{}\", \"step\": {}, \"loss\": {}}}\n", run,
                             run < 3 ? "base" : "wide", step + shift * run, 3 - step + run);
    }
    const RunArms arms = gather_arms({{"", file("t.jsonl", lines)}}, {.by = {"run_name"}});
    ASSERT_EQ(arms.arms.size(), 2U);
    EXPECT_EQ(arms.arms[1].name, "wide");
    EXPECT_EQ(arms.arms[1].sweep.points[0].losses, (std::vector<double>{4, 5, 6}));
  }
}

// pandas and many loggers write nan where a line has no value of a metric.
TEST_F(RunFiles, NanMayMeanThatNothingWasMeasured) {
  const auto end = [&](const std::vector<const char*>& values) {
    std::string table = "step,loss,val_loss\n";
    for (size_t i = 0; i < values.size(); ++i) table += fmt::format("{},1,{}\n", i, values[i]);
    const RunArms arms = gather_arms({{"a", file("n.csv", table)}}, {});
    return runs_in(arms) +
           (notes_in(arms, "nan between values of val_loss is read as not measured").empty() ? "" : " *");
  };
  EXPECT_EQ(end({"3", "nan", "2", "nan", "1"}), "a – 3 4 1 *");
  EXPECT_EQ(end({"3", "NaN", "2", "NaN"}), "a – 2 2 2 *");  // the last line has none, either
  EXPECT_EQ(end({"nan", "nan", "3", "nan", "nan", "2", "nan"}), "a – 2 5 2 *");
  EXPECT_EQ(end({"3", "", "2", ""}), "a – 2 2 2");
  // A run that diverged ends with more of them than it leaves out, or with the first.
  EXPECT_EQ(end({"3", "nan", "2", "nan", "nan"}), "a – 4 4 failed nan *");
  EXPECT_EQ(end({"3", "2", "nan"}), "a – 3 2 failed nan");
  EXPECT_EQ(end({"nan", "3", "2", "nan"}), "a – 3 3 failed nan *");
  EXPECT_EQ(end({"nan", "nan"}), "a – 2 1 failed nan");
  EXPECT_EQ(end({"3", "nan", "inf"}), "a – 2 2 failed nan *");
}

// What W&B and MLflow export of several runs: a line is a run, though it says how many steps that had.
TEST_F(RunFiles, TablesOfRuns) {
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
    EXPECT_EQ(runs_in(gather_arms({{"", file("w.csv", table)}}, {.metric = "eval/loss", .by = {"optimizer"}})),
              expected)
        << name;
  }
  const std::string mlflow =
      "run_id,status,params.optimizer,params.seed,params.steps,metrics.loss\naa1,FINISHED,adamw,0,5000,2.5\n"
      "aa2,FINISHED,adamw,1,5000,2.25\nbb1,FINISHED,muon,0,5000,2.125\nbb4,FAILED,muon,3,5000,6.5\n";
  EXPECT_EQ(runs_in(gather_arms({{"", file("m.csv", mlflow)}}, {.metric = "loss"})),
            "adamw 0 1 5000 FINISHED 2.5; adamw 1 1 5000 FINISHED 2.25; muon 0 1 5000 FINISHED 2.125; "
            "muon 3 1 5000 failed (FAILED) nan");
  // Without steps, and in the lines of one run: its last state counts.
  EXPECT_EQ(
      runs_in(gather_arms({{"a", file("s.tsv", "commit\tloss\tstatus\nabc\t1.5\tkeep\ndef\t0\tOOM (8 GB)\n")}}, {})),
      "a – 1 0 keep 1.5; a – 1 0 failed (OOM (8 GB)) nan");
  EXPECT_EQ(
      runs_in(gather_arms({{"a", file("l.csv", "step,status,loss\n1,running,3\n2,running,2\n3,failed,1\n")}}, {})),
      "a – 3 3 failed nan");
}

// A run of transformers' Trainer that was killed leaves its checkpoints, and no file above them.
TEST_F(RunFiles, OfTrainersCheckpointsTheNewestCounts) {
  const auto state = [&](const std::string& name, int last) {
    Json log = Json::array();
    for (int step = 100; step <= last; step += 100) log.push_back({{"step", step}, {"eval_loss", 1000 - step}});
    fs::create_directories((folder_ / name).parent_path());
    (void)file(name, Json{{"log_history", log}}.dump());
  };
  for (const char* run : {"killed", "whole"}) {
    for (const int step : {500, 900, 1000}) state(fmt::format("{}/checkpoint-{}/trainer_state.json", run, step), step);
  }
  state("whole/trainer_state.json", 1100);
  EXPECT_EQ(runs_in(gather_arms({{"a", folder_.path()}}, {})), "a – 10 1000 checkpoint-1000 0; a – 11 1100 -100");
  EXPECT_EQ(read_run_records(folder_ / "killed" / "checkpoint-500")[0].series.at("eval_loss").size(), 5U);
}

TEST_F(RunFiles, ArmsOfNamesThatDifferInALastNumber) {
  fs::create_directories(folder_ / "csv");
  for (const std::string name : {"base-s1", "base-s2", "lr2x-s1", "lr2x-s2", "wide-s1"}) {
    (void)file("csv/" + name + ".csv", "step,loss\n1,3\n2,2\n");
    write_curve(folder_ / "tb" / name, "loss", 0, 200, 1);
  }
  for (const char* place : {"csv", "tb"}) {
    const RunArms arms = gather_arms({{"", folder_ / place}}, {.metric = "loss"});
    ASSERT_EQ(arms.arms.size(), 3U) << place;
    EXPECT_EQ(arms.arms[0].name, "base");
    EXPECT_EQ(arms.arms[1].name, "lr2x");
    EXPECT_EQ(arms.arms[1].sweep.points[0].losses.size(), 2U);
    EXPECT_EQ(notes_in(arms, "arms are those of the runs' names").size(), 1U);
  }
  const std::string rows = "step,run,loss\n1,base_seed1,3\n1,base_seed2,3.5\n1,wide_seed1,2\n";
  EXPECT_EQ(gather_arms({{"", file("t.csv", rows)}}, {}).arms.at(1).name, "wide");
  // Names without a number, or with another one for each, say nothing.
  for (const char* names : {"1,a1,3\n1,a2,3\n1,b,2\n", "1,swift-fox-1,3\n1,calm-owl-2,3\n"})
    test::expect_error(
        [&] {
          gather_arms({{"", file("n.csv", std::string("step,run,loss\n") + names)}}, {});
        },
        "no setting but seed and learning rate tells the runs apart");
}

TEST_F(RunFiles, NoPlaceLiesWithinAnother) {
  fs::create_directories(folder_ / "runs" / "new");
  (void)file("runs/1.csv", "step,loss\n1,3\n");
  const std::string inner = file("runs/new/2.csv", "step,loss\n1,3\n");
  const std::string runs = (folder_ / "runs").string();
  for (const std::string& within : {runs + "/new", inner})
    test::expect_error([&] { gather_arms({{"all", runs}, {"new", within}}, {}); }, within + " lies within " + runs);
  EXPECT_EQ(gather_arms({{"all", runs + "/1.csv"}, {"new", inner}}, {}).runs.size(), 2U);
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
TEST_F(RunFiles, SeveralArmsShareTheError) {
  const auto outcomes = [&](const std::vector<std::pair<std::string, double>>& gains) {
    std::string text;
    for (const JudgedPair& pair : judge_arms(gather_arms({{"", file("t.csv", table_of(gains))}}, {}), {}).pairs)
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
TEST_F(RunFiles, IntervalsAreThoseOfTheSharedError) {
  const auto pairs = [&](const std::vector<std::pair<std::string, double>>& gains) {
    return judge_arms(gather_arms({{"", file("t.csv", table_of(gains))}}, {}), {}).pairs;
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
