// Runs that are killed and resumed. Each life of a run is a fork of a process that has loaded everything but computed
// nothing (a process with OpenMP threads cannot be forked), so starting it takes only milliseconds.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "plumb/base/error.h"
#include "plumb/train/run_training.h"
#include "support/fast_directory.h"
#include "support/process.h"

namespace plumb::test {

#if defined(__SANITIZE_THREAD__)
constexpr bool kMayFork = false;  // ThreadSanitizer does not support threads after a fork
#else
constexpr bool kMayFork = true;
#endif

/// Calls `prepare` with a new folder, then starts this test again in a process of its own, which calls `work` with the
/// folder and computes nothing itself.
inline void in_a_process_of_its_own(const std::function<void(const std::filesystem::path&)>& prepare,
                                    const std::function<void(const std::filesystem::path&)>& work) {
  constexpr const char* kFolder = "PLUMB_TEST_FOLDER";
  if (const char* folder = std::getenv(kFolder)) return work(folder);
  if (!kMayFork) GTEST_SKIP() << "needs fork";
  const FastDirectory folder;
  prepare(folder.path());
  ::setenv(kFolder, folder.path().c_str(), 1);
  ::setenv("PLUMB_PROGRAM", test::plumb_program().c_str(), 1);
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  Process again(std::filesystem::read_symlink("/proc/self/exe").string(),
                {std::string("--gtest_filter=") + test->test_suite_name() + "." + test->name()});
  ::unsetenv(kFolder);
  const Finished finished = again.wait();
  EXPECT_EQ(finished.status, 0) << finished.output << finished.errors;
  std::printf("%s", finished.output.substr(0, 4000).c_str());
}

/// The exit statuses of a life besides 0, for a run that has finished.
constexpr int kNotFinished = 3, kRefused = 4;

/// Starts a life of a run in a new process group.
inline pid_t begin_life(const RunConfig& config, const std::filesystem::path& out) {
  const pid_t child = ::fork();
  if (child > 0) ::setpgid(child, child);
  if (child != 0) return child;
  ::setpgid(0, 0);
  int status = 1;
  try {
    status = run_training(config, out).outcome == RunOutcome::finished ? 0 : kNotFinished;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    status = kRefused;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  ::_exit(status);
}

/// Waits until a life ends by itself, but only for `limit`: then kills it, with or without its workers. Returns its
/// exit status, or -1 if it was killed.
inline int end_of_life(pid_t life, std::chrono::steady_clock::duration limit, bool with_workers) {
  const auto end = std::chrono::steady_clock::now() + limit;
  int status = 0;
  while (::waitpid(life, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      continue;
    }
    ::kill(with_workers ? -life : life, SIGKILL);
    ::waitpid(life, &status, 0);
    break;
  }
  ::kill(-life, SIGKILL);  // no process of this life may survive into the next
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  return -1;
}

}  // namespace plumb::test
