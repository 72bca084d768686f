// Runs from tables and logs as programs and people write them, and from damaged ones.
#include "run_files.h"

#include <sys/stat.h>

#include <cmath>

#include "plumb/base/json.h"
#include "plumb/judge/run_record.h"
#include "support/logs_of_programs.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using test::expect_refused;
using test::gathered;
using test::golden_run;
using test::notes_in;
using test::RunFiles;
using test::runs_in;

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

// What judge is given may be anything.
TEST_F(RunFiles, PipesDevicesAndEndlessFilesAreRefused) {
  for (const char* kind : {"csv", "tsv", "jsonl", "ndjson", "json"}) {
    const fs::path place = folder_ / (std::string("log.") + kind);
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
  const fs::path events = folder_ / "events.out.tfevents.1";
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

// Logs as people have them: none of these may be taken for several runs, or several of them for one.
TEST_F(RunFiles, LogsOfManyPrograms) {
  const auto runs = [&](const std::string& name, const std::string& text) {
    return read_run_records(file(name, text)).size();
  };
  EXPECT_EQ(runs("tb.csv", "Wall time,Step,Value\n1,10,2.5\n2,20,2.4\n"), 1U);
  EXPECT_EQ(runs("nano.jsonl", "{\"iter\": 0, \"loss\": 3}\n{\"iter\": 10, \"loss\": NaN}\n"), 1U);
  EXPECT_EQ(runs("fast.csv", "epoch,train_loss,time\n0,3,00:10\n1,2,00:11\n2,1,00:10\n3,1,00:10\n"), 1U);
  EXPECT_EQ(runs("best.jsonl", "{\"step\": 0, \"is_best\": true}\n{\"step\": 1, \"is_best\": false}\n"), 1U);
  expect_refused("a", file("lr.csv", "step,seed,lr,loss\n0,1,0.1,3\n1,1,0.1,2\n0,1,0.2,4\n1,1,0.2,3\n"), {},
                 "two values of loss at step 0");
  EXPECT_TRUE(gathered("a", file("f.csv", "flowers_acc,seed\n1,1\n"), {.metric = "flowers_acc"}).larger_is_better);
  expect_refused("a", file("s.csv", "tokens_per_second,seed\n1,1\n"), {.metric = "tokens_per_second"},
                 "better, or less");
}

// Files whose names say nothing, in directories: what their lines are decides.
TEST_F(RunFiles, TablesAreKnownByTheirLines) {
  struct Log {
    const char *name, *text, *metric;
    double last;
  };
  const std::vector<Log> logs = {
      {"training.log", "epoch,loss,val_loss\n0,3.1,3.2\n1,2.1,2.2\n", "val_loss", 2.2},                     // Keras
      {"log.txt", "{\"test_loss\": 3, \"epoch\": 0}\n{\"test_loss\": 2, \"epoch\": 1}\n", "test_loss", 2},  // DeiT
      {"metrics.json",  // detectron2
       "{\"iteration\": 19, \"total_loss\": 3}\n{\"iteration\": 39, \"total_loss\": 2}\n"
       "{\"bbox/AP\": 40.5, \"iteration\": 39}\n",
       "bbox/AP", 40.5},
      {"scalars.json",  // MMEngine
       "{\"loss\": 3, \"step\": 50}\n{\"accuracy/top1\": 51.5, \"step\": 1}\n", "accuracy/top1", 51.5},
      {"result.json",  // Ray
       "{\"training_iteration\": 1, \"loss\": 3, \"config\": {\"lr\": 0.1}}\n"
       "{\"training_iteration\": 2, \"loss\": 2, \"config\": {\"lr\": 0.1}}\n",
       "loss", 2},
      {"train.log",  // fairseq
       "2024-01-01 | INFO | fairseq_cli.train | Namespace(seed=1)\n"
       "2024-01-01 | INFO | fairseq_cli.train | training on 1 device\n"
       "2024-01-01 | INFO | valid | {\"epoch\": 1, \"valid_loss\": \"3.5\"}\n"
       "2024-01-01 | INFO | valid | {\"epoch\": 2, \"valid_loss\": \"2.5\"}\n",
       "valid_loss", 2.5},
      {"results.csv", "   epoch,   val/box_loss\n       0,    3.5\n       1,    2.5\n", "val/box_loss", 2.5},  // YOLO
  };
  for (const Log& log : logs) {
    const test::TemporaryDirectory run;
    write_file_atomic(run / "requirements.txt", "torch\nnumpy\n");
    write_file_atomic(run / "config.json", R"({"seed": 1, "lr": 0.001})");
    write_file_atomic(run / log.name, log.text);
    const std::vector<RunRecord> runs = read_run_records(run.path());
    ASSERT_EQ(runs.size(), 1U) << log.name;
    ASSERT_TRUE(runs[0].series.contains(log.metric)) << log.name;
    EXPECT_EQ(runs[0].series.at(log.metric).back().value, log.last) << log.name;
  }
  // Results of one run are read where they are named.
  const std::string results = file("all_results.json", "{\n \"epoch\": 3.0,\n \"eval_loss\": 2.5\n}");
  EXPECT_EQ(read_run_records(results)[0].series.at("eval_loss")[0].value, 2.5);
  test::expect_error([&] { read_run_records(folder_.path()); }, "no runs");
}

// A program that resumes a run adds to its log, from the last checkpoint on.
TEST_F(RunFiles, LinesThatRepeatStepsAreThoseOfAResumedRun) {
  const std::string once = "step,loss\n0,5\n100,4\n200,3\n300,2\n";
  const std::string again = file("again.csv", once + "200,3.5\n300,2.5\n400,1.5\n");
  const RunArms arms = gathered("a", again, {.metric = "loss"});
  EXPECT_EQ(runs_in(arms), "a – 5 400 1.5");
  EXPECT_EQ(notes_in(arms, "1 runs repeat steps").size(), 1U);
  EXPECT_EQ(gathered("a", again, {.metric = "loss", .at = "200"}).runs[0].value, 3.5);
  // Another run begins at the beginning, or at a step that this one did not have, or has a line beside each of it.
  for (const char* more : {"0,5.5\n100,4.5\n", "250,2.5\n", "100,4.5\n100,4.25\n100,4\n"})
    expect_refused("a", file("two.csv", once + more), {.metric = "loss"}, "two.csv: has two values of loss at step");
  expect_refused("a", file("t.csv", "model,epoch,acc\nm1,7,0.81\nm2,9,0.80\nm3,8,0.82\n"), {.metric = "acc"},
                 "or goes back to it");
}

// pandas and many loggers write nan where a line has no value of a metric.
TEST_F(RunFiles, NanMayMeanThatNothingWasMeasured) {
  const auto end = [&](const std::vector<const char*>& values) {
    std::string table = "step,loss,val_loss\n";
    for (size_t i = 0; i < values.size(); ++i) table += fmt::format("{},1,{}\n", i, values[i]);
    const RunArms arms = gathered("a", file("n.csv", table));
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

}  // namespace
}  // namespace plumb
