// Runs killed by SIGKILL at random instants and resumed until they finish: every file is as in a run that was never
// killed, byte for byte except for times.
//
// Each life of a run is a fork of a process that has loaded everything but computed nothing (a process with OpenMP
// threads cannot be forked), so starting it takes only milliseconds. That process is this program, started again with a
// test that is otherwise disabled.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "copy_task.h"
#include "fast_directory.h"
#include "plumb/base/error.h"
#include "plumb/base/progress.h"
#include "plumb/train/run.h"
#include "run_contents.h"
#include "support/process.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

#if defined(__SANITIZE_THREAD__)
constexpr bool kMayFork = false;  // ThreadSanitizer does not support threads after a fork
#else
constexpr bool kMayFork = true;
#endif

/// A run that uses everything that is stored besides parameters.
RunConfig eventful_run(const fs::path& data, int64_t processes) {
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
  Config::from_string("[task.translation]\nbeam = 1\n", "test").read("task", run.task);
  return run;
}

/// Starts a life of a run in a new process group.
pid_t begin_life(const RunConfig& config, const fs::path& out) {
  const pid_t child = ::fork();
  if (child > 0) ::setpgid(child, child);
  if (child != 0) return child;
  ::setpgid(0, 0);
  int status = 1;
  try {
    set_verbosity(Verbosity::quiet);
    status = run_training(config, out).outcome == "finished" ? 0 : 3;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  ::_exit(status);
}

/// Whether the life ended by itself before `limit`; otherwise kills it then, with or without its workers.
bool survives(pid_t life, Clock::duration limit, bool with_workers) {
  const auto end = Clock::now() + limit;
  int status = 0;
  while (::waitpid(life, &status, WNOHANG) == 0) {
    if (Clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      continue;
    }
    ::kill(with_workers ? -life : life, SIGKILL);
    ::waitpid(life, &status, 0);
    break;
  }
  ::kill(-life, SIGKILL);  // no process of this life may survive into the next
  if (WIFSIGNALED(status)) {
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
    return false;
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
  return true;
}

/// Kills lives of runs `kills` times in total, and compares every finished run.
void kill_runs(int64_t processes, int64_t kills, std::chrono::microseconds longest_life) {
  const fs::path folder = std::getenv("PLUMB_TEST_FOLDER");
  const RunConfig config = eventful_run(folder / "data", processes);
  ASSERT_TRUE(survives(begin_life(config, folder / "whole"), std::chrono::minutes(2), true));
  const auto whole = test::contents_of_run(folder / "whole");
  EXPECT_TRUE(whole.contains("best/model.safetensors"));
  EXPECT_TRUE(whole.contains("checkpoints/step-000020/model.safetensors"));

  Random random(1, "kills");
  int64_t finished = 0;
  for (int64_t killed = 0; killed < kills || finished == 0; ++killed) {
    const fs::path out = folder / ("run" + std::to_string(finished));
    // The last life may take as long as it needs.
    const bool last = killed >= kills;
    const std::chrono::microseconds limit(random.below(static_cast<uint64_t>(longest_life.count())));
    if (!survives(begin_life(config, out), last ? Clock::duration(std::chrono::minutes(2)) : limit,
                  random.below(2) == 0))
      continue;
    ASSERT_FALSE(::testing::Test::HasFailure());
    const auto contents = test::contents_of_run(out);
    for (const auto& [name, content] : whole) {
      ASSERT_TRUE(contents.contains(name)) << name;
      ASSERT_TRUE(contents.at(name) == content) << name << ":\n"
                                                << (name.ends_with(".safetensors") ? "" : contents.at(name) + content);
    }
    for (const auto& [name, content] : contents) ASSERT_TRUE(whole.contains(name)) << name;
    ++finished;
  }
  std::printf("%ld kills, %ld finished runs\n", static_cast<long>(kills), static_cast<long>(finished));
}

class Killed : public ::testing::Test {};

// Started only by the tests below.
TEST_F(Killed, DISABLED_OneProcess) { kill_runs(1, 150, std::chrono::milliseconds(400)); }
TEST_F(Killed, DISABLED_TwoProcesses) { kill_runs(2, 50, std::chrono::milliseconds(2500)); }

void run_in_a_process_of_its_own(const std::string& test) {
  if (!kMayFork) GTEST_SKIP() << "needs fork";
  test::FastDirectory folder;
  test::make_copy_task(folder / "data");
  ::setenv("PLUMB_TEST_FOLDER", folder.path().c_str(), 1);
  ::setenv("PLUMB_PROGRAM", PLUMB_BINARY, 1);
  const auto finished = test::Process(fs::read_symlink("/proc/self/exe").string(),
                                      {"--gtest_also_run_disabled_tests", "--gtest_filter=Killed.DISABLED_" + test})
                            .wait();
  EXPECT_EQ(finished.status, 0) << finished.output << finished.errors;
  std::printf("%s", finished.output.substr(0, 4000).c_str());
}

TEST_F(Killed, ARunOfOneProcessEndsTheSame) { run_in_a_process_of_its_own("OneProcess"); }
TEST_F(Killed, ARunOfTwoProcessesEndsTheSame) { run_in_a_process_of_its_own("TwoProcesses"); }

}  // namespace
}  // namespace plumb
