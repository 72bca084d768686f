#include "plumb/parallel/workers.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/parallel/rendezvous.h"
#include "support/paths.h"

namespace plumb {
namespace {

class WorkerProcesses : public ::testing::Test {
 protected:
  ~WorkerProcesses() override { ::unsetenv("PLUMB_PROGRAM"); }

  static void set_program(const std::filesystem::path& program) { ::setenv("PLUMB_PROGRAM", program.c_str(), 1); }

  test::TemporaryDirectory folder_;
};

TEST_F(WorkerProcesses, GetArgumentsAndRendezvous) {
  const auto program = folder_ / "program";
  write_file_atomic(
      program, "#!/bin/sh\nprintf '%s' \"$RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT, $*\" > \"$2.$RANK\"\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  set_program(program);
  Workers workers;
  workers.start({"train", (folder_ / "out").string()}, 3, 29500);
  workers.wait();
  for (const std::string rank : {"1", "2"}) {
    EXPECT_EQ(read_file(folder_ / ("out." + rank)),
              rank + " of 3 at 127.0.0.1:29500, train " + (folder_ / "out").string());
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.0"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.3"));
}

TEST_F(WorkerProcesses, AnExitIsNoticedWhileTheOthersWait) {
  set_program("/bin/false");
  Workers workers;
  const JoinEvents events{[&](int64_t port) { workers.start({}, 2, port); }, [&] { workers.check(); }};
  try {
    static_cast<void>(join_group({0, 2}, events));
    FAIL() << "met a process that has exited";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "a worker process has exited");
  }
}

TEST_F(WorkerProcesses, AreEndedWithTheirOwner) {
  const auto program = folder_ / "program";
  write_file_atomic(program, "#!/bin/sh\nexec tail -f /dev/null\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  set_program(program);
  Workers workers;
  workers.start({}, 3, 29500);
  EXPECT_NO_THROW(workers.check());
}

TEST_F(WorkerProcesses, NeedAProgram) {
  const auto start = [] {
    Workers workers;
    workers.start({}, 2, 29500);
  };
  try {
    start();  // the test program is not plumb
    FAIL() << "found a program";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cannot find the plumb executable for worker processes");
  }
  set_program(folder_ / "missing");
  EXPECT_THROW(start(), Error);
}

}  // namespace
}  // namespace plumb
