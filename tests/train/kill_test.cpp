// Runs killed by SIGKILL at random instants and resumed until they finish: every file is as in a run that was never
// killed, byte for byte except for times.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "copy_task.h"
#include "lives.h"
#include "run_contents.h"
#include "search/search.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// A run that uses everything that is stored besides parameters.
RunConfig eventful_run(const fs::path& data, int64_t processes, const std::string& shard) {
  RunConfig run = test::copy_run(data);
  run.model.dropout = 0.1;
  run.train.steps = 90;
  run.train.log_every = 2;
  run.train.validate_every = 4;
  run.train.checkpoint_every = 3;
  run.train.keep_checkpoints = 2;
  run.train.keep_every = 20;
  run.train.keep_best = 2;
  run.train.patience = 100;
  run.train.processes = processes;
  run.train.shard = shard;
  Config::from_string("[task.translation]\nbeam = 1\n", "test").read("task", run.task);
  return run;
}

/// Kills lives of runs `kills` times in total, and compares every finished run.
void kill_runs(const fs::path& folder, const RunConfig& config, int64_t kills, std::chrono::microseconds longest_life) {
  ASSERT_EQ(test::end_of_life(test::begin_life(config, folder / "whole"), std::chrono::minutes(2), true), 0);
  const auto whole = test::contents_of_run(folder / "whole");
  EXPECT_TRUE(whole.contains("best/model.safetensors"));
  EXPECT_TRUE(whole.contains("checkpoints/step-000020/model.safetensors"));

  Random random(test::search_seed(), "kills");
  int64_t finished = 0;
  for (int64_t killed = 0; killed < kills || finished == 0; ++killed) {
    const fs::path out = folder / ("run" + std::to_string(finished));
    // The last life may take as long as it needs.
    const bool last = killed >= kills;
    const std::chrono::microseconds limit(random.below(static_cast<uint64_t>(longest_life.count())));
    const int status = test::end_of_life(test::begin_life(config, out),
                                         last ? Clock::duration(std::chrono::minutes(2)) : limit, random.below(2) == 0);
    if (status == -1) continue;
    ASSERT_EQ(status, 0);
    test::expect_same_files(test::contents_of_run(out), whole);
    ASSERT_FALSE(::testing::Test::HasFailure());
    ++finished;
  }
  std::printf("%ld kills, %ld finished runs\n", static_cast<long>(kills), static_cast<long>(finished));
}

void kill_runs_of(int64_t processes, int64_t kills, std::chrono::microseconds longest_life,
                  const std::string& shard = "none") {
  test::in_a_process_of_its_own([](const fs::path& folder) { test::make_copy_task(folder / "data"); },
                                [=](const fs::path& folder) {
                                  const RunConfig config = eventful_run(folder / "data", processes, shard);
                                  kill_runs(folder, config, kills, longest_life);
                                });
}

// `make search` kills more often, at other instants.
int64_t kills_or(int64_t in_the_suite) {
  return static_cast<int64_t>(test::number_from_environment("PLUMB_KILLS", static_cast<uint64_t>(in_the_suite)));
}

TEST(Killed, ARunOfOneProcessEndsTheSame) { kill_runs_of(1, kills_or(45), std::chrono::milliseconds(400)); }
TEST(Killed, ARunOfTwoProcessesEndsTheSame) { kill_runs_of(2, kills_or(15), std::chrono::milliseconds(2500)); }
TEST(Killed, ARunWhoseParametersAreInPiecesEndsTheSame) {
  kill_runs_of(2, kills_or(8), std::chrono::milliseconds(2500), "parameters");
}

}  // namespace
}  // namespace plumb
