// Runs of other programs, from files that these programs wrote (scripts/golden/run_logs.py).
#include "plumb/judge/run_record.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "plumb/report/tensorboard.h"
#include "support/logs_of_programs.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

using test::golden_run;

/// As the script computes it.
double loss(const std::string& arm, int seed, double step) {
  return 4 - (arm == "wide" ? step / 1600 : 0) - step / 400 + seed / 64.0;
}

/// Expects the runs of the script under this metric, each named or set up as `arm_of` and `seed_of` say.
template <typename ArmOf, typename SeedOf>
void expect_runs(const std::vector<RunRecord>& runs, const std::string& metric, const ArmOf& arm_of,
                 const SeedOf& seed_of) {
  ASSERT_EQ(runs.size(), 6U);
  for (const RunRecord& run : runs) {
    const auto& values = run.series.at(metric);
    ASSERT_EQ(values.size(), 4U) << run.name;
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(values[i].step, 100.0 * static_cast<double>(i));
      EXPECT_EQ(values[i].value, loss(arm_of(run), seed_of(run), values[i].step)) << run.name;
    }
  }
}

int digit_in(const std::string& text) { return text.at(text.find_first_of("123")) - '0'; }
std::string arm_in(const std::string& text) { return text.find("wide") == std::string::npos ? "base" : "wide"; }

TEST(RunRecords, OfEventFilesWithHyperparameters) {
  const std::vector<RunRecord> runs = read_run_records(golden_run("tensorboard"));
  for (const char* metric : {"loss/eval", "loss/again"}) {  // as numbers, and as tensors
    expect_runs(
        runs, metric, [](const RunRecord& run) { return *run.setting("width"); },
        [](const RunRecord& run) { return std::stoi(*run.setting("seed")); });
  }
  EXPECT_EQ(*runs[0].setting("tied"), "1");  // as SummaryWriter has it
  EXPECT_EQ(read_run_records(golden_run("tensorboard/base-2/events.out.tfevents.1")).size(), 1U);
}

TEST(RunRecords, OfLightningsTables) {
  expect_runs(
      read_run_records(golden_run("lightning")), "val_loss", [](const RunRecord& run) { return arm_in(run.name); },
      [](const RunRecord& run) { return digit_in(run.name); });
}

TEST(RunRecords, OfTransformersTrainer) {
  expect_runs(
      read_run_records(golden_run("trainer")), "eval_loss", [](const RunRecord& run) { return arm_in(run.name); },
      [](const RunRecord& run) { return digit_in(run.name); });
}

// The reader understands what SummaryWriter writes, so what it reads here, TensorBoard understands.
TEST(RunRecords, OfPlumbsOwnEventFiles) {
  const test::TemporaryDirectory folder;
  {
    EventWriter writer(folder.path());
    writer.hyperparameters({{"train.learning_rate", "5e-4"}, {"model.norm", "rmsnorm"}, {"model.pooler", "false"}}, 1);
    writer.scalar("valid/loss", 10, 2.5, 2);
  }
  const RunRecord run = read_run_records(folder.path())[0];
  EXPECT_EQ(*run.setting("train.learning_rate"), "0.0005");  // a number
  EXPECT_EQ(*run.setting("model.norm"), "rmsnorm");
  EXPECT_EQ(*run.setting("model.pooler"), "false");
  EXPECT_EQ(run.series.at("valid/loss")[0].value, 2.5);
}

// SummaryWriter.add_hparams writes into a directory of its own, unless it is told otherwise.
TEST(RunRecords, HyperparametersOfADirectoryWithinAreTheRuns) {
  const test::TemporaryDirectory folder;
  EventWriter(folder.path() / "a").scalar("loss", 10, 2.5, 2);
  EventWriter(folder.path() / "a" / "1700000000.5").hyperparameters({{"seed", "3"}}, 1);
  EventWriter(folder.path() / "b").scalar("loss", 10, 2.25, 2);
  const std::vector<RunRecord> runs = read_run_records(folder.path());
  ASSERT_EQ(runs.size(), 2U);
  ASSERT_NE(runs[0].setting("seed"), nullptr);
  EXPECT_EQ(*runs[0].setting("seed"), "3");
  EXPECT_EQ(runs[0].series.at("loss")[0].value, 2.5);
}

/// A part of a run: its file begins with this time, and has these steps, with the time as their value.
struct RunPart {
  int time, first, last;
  int stride = 1;
  bool start = false;  // says where it begins
};

/// The value of each step from 1 on, as a text: "11122".
std::string joined(const std::vector<RunPart>& parts) {
  const test::TemporaryDirectory folder;
  for (const RunPart& part : parts) {
    const fs::path other = folder.path() / "other";
    {
      EventWriter writer(other);
      if (part.start) writer.start(part.first, 1);
      writer.hyperparameters({{"rate", "1"}}, 1);
      for (int step = part.first; step <= part.last; step += part.stride) writer.scalar("loss", step, part.time, 1);
    }
    for (const auto& entry : fs::directory_iterator(other))
      fs::rename(entry.path(), folder.path() / ("events.out.tfevents." + std::to_string(part.time)));
  }
  std::string text;
  const RunRecord run = read_run_records(folder.path()).at(0);
  for (const RunRecord::Value& one : run.series.at("loss")) {
    text.resize(static_cast<size_t>(one.step), '.');
    text.back() = static_cast<char>('0' + static_cast<int>(one.value));
  }
  return text;
}

// A run that goes on after a fall writes another file, whose first steps are those of the fall.
TEST(RunRecords, OfEventFilesOfARunThatWasResumed) {
  EXPECT_EQ(joined({{1, 1, 8}, {2, 6, 9}}), "111112222");
  EXPECT_EQ(joined({{1, 1, 8}, {2, 6, 5, 1, true}, {3, 6, 9, 1, true}}), "111113333");  // the second was killed at once
}

TEST(RunRecords, OfEventFilesWhileTheClockWentBack) {
  EXPECT_EQ(joined({{2, 1, 6}, {1, 7, 12}}), "222222111111");
  EXPECT_EQ(joined({{2, 1, 8}, {1, 6, 12}}), "222221111111");
  EXPECT_EQ(joined({{1, 1, 4}, {3, 4, 8}, {2, 9, 12}}), "111333332222");
  EXPECT_EQ(joined({{2, 1, 4, 1, true}, {1, 5, 8, 1, true}}), "22221111");
}

// A run may go back further than to its last part, or leave the steps out that it does not measure.
TEST(RunRecords, OfEventFilesInTheOrderOfASoundClock) {
  EXPECT_EQ(joined({{1, 1, 8}, {2, 6, 12}, {3, 3, 9}}), "113333333");
  EXPECT_EQ(joined({{1, 1, 5, 2}, {2, 7, 11, 2}, {3, 3, 9, 2}}), "1.3.3.3.3");
  EXPECT_EQ(joined({{1, 1, 8}, {2, 1, 3}}), "222");
}

}  // namespace
}  // namespace plumb
