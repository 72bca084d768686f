// What a run asks of the file system: locks, also where there are none, and that files survive a power failure. This
// program's own fsync and flock take the place of the system's.
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

#include "plumb/base/checksum.h"
#include "plumb/base/files.h"
#include "plumb/run/checkpoints.h"
#include "plumb/run/directory.h"
#include "support/errors.h"
#include "support/paths.h"

namespace {

int lock_failure = 0;    // errno of flock; 0: none
std::set<ino_t> synced;  // files and directories
ino_t inode_of(const std::filesystem::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

}  // namespace

extern "C" int flock(int descriptor, int operation) noexcept {
  if (lock_failure == 0) return static_cast<int>(::syscall(SYS_flock, descriptor, operation));
  errno = lock_failure;
  return -1;
}

extern "C" int fsync(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) == 0) synced.insert(status.st_ino);
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

namespace plumb {
namespace {

namespace fs = std::filesystem;

class OpenRuns : public ::testing::Test {
 protected:
  OpenRuns() { std::ofstream(folder_ / "config.toml") << ""; }
  ~OpenRuns() override { lock_failure = 0; }

  static Snapshot snapshot(int64_t step) {
    Snapshot snapshot{step, {}, {{"step", step}}};
    snapshot.files.push_back({"model.safetensors", {{"w", at::ones({2}) * step}}, {}, false});
    return snapshot;
  }

  test::TemporaryDirectory folder_;
};

TEST_F(OpenRuns, OneProcessAtATime) {
  {
    const OpenRun run(folder_.path());
    EXPECT_EQ(run.place(), folder_.path());
    EXPECT_EQ(test::message_of([&] { OpenRun second(folder_.path()); }),
              folder_.path().string() + ": another process is training here");
  }
  EXPECT_EQ(test::message_of([&] { OpenRun third(folder_.path()); }), "accepted");
}

TEST_F(OpenRuns, WithoutLocksARunIsTrainedWithAWarningThatSaysWhy) {
  for (const int failure : {ENOSYS, EOPNOTSUPP, ENOLCK, EACCES, EINVAL}) {
    lock_failure = failure;
    ::testing::internal::CaptureStderr();
    const std::string message = test::message_of([&] { OpenRun run(folder_.path()); });
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(message, "accepted");
    EXPECT_CONTAINS(said, folder_.path().string() + ": cannot be locked (" + std::strerror(failure) + ")");
    EXPECT_LACKS(said, "another process");
  }
}

TEST_F(OpenRuns, TheNameOfTheDirectoryIsSynced) {
  fs::create_directory(folder_ / "run");
  std::ofstream(folder_ / "run" / "config.toml") << "";
  synced.clear();
  const OpenRun run(folder_ / "run");
  EXPECT_TRUE(synced.contains(inode_of(folder_.path())));
}

TEST_F(OpenRuns, ACopyOfACheckpointIsSynced) {
  const fs::path run = folder_ / "run", best = run / "best";
  write_checkpoint(run, snapshot(3), {});
  write_best(run, snapshot(9));
  synced.clear();
  return_best(run, 5, 3);
  EXPECT_EQ(damage_of(best), "");
  EXPECT_EQ(read_snapshot(best).step, 3);
  for (const char* name : {"model.safetensors", "state.json", ""})
    EXPECT_TRUE(synced.contains(inode_of(best / name))) << name;
  EXPECT_TRUE(synced.contains(inode_of(run)));
}

TEST_F(OpenRuns, ChecksumsAreOfFilesAlone) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const fs::path& path : {folder_ / "pipe", fs::path("/dev/zero"), folder_.path()}) {
    EXPECT_THROW((void)mark_of(path), Error) << path;
    EXPECT_THROW((void)digest_of(path), Error) << path;
  }
}

}  // namespace
}  // namespace plumb
