// Files that are written and read as a whole. directories_test.cpp has directories.
#include "plumb/base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <set>
#include <thread>

#include "base/small_files.h"
#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "support/errors.h"
#include "support/paths.h"

// A system call that tests can make fail. The program's own definition takes precedence over the C library's.
namespace {
bool sync_fails = false;
thread_local std::set<ino_t> synced;  // files and directories

ino_t inode_of(const std::filesystem::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}
}  // namespace

extern "C" int fsync(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) == 0) synced.insert(status.st_ino);
  if (!sync_fails) return static_cast<int>(::syscall(SYS_fsync, descriptor));
  errno = EIO;
  return -1;
}

namespace plumb {
namespace {
namespace fs = std::filesystem;
using test::entries;
using test::put;
using test::TemporaryDirectory;

TEST(Files, WritesAtomicallyAndMakesTheDirectory) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "a/b/file";
  write_file_atomic(path, std::string_view("one\0two", 7));
  EXPECT_EQ(read_file(path), std::string("one\0two", 7));
  write_file_atomic(path, "three");
  EXPECT_EQ(read_file(path), "three");
  EXPECT_EQ(entries(path.parent_path()), 1U);
}

TEST(Files, AScratchDirectoryGoesWithWhatIsInIt) {
  fs::path path;
  {
    const ScratchDirectory scratch;
    path = scratch.path();
    write_file_atomic(path / "inner" / "file", "text");
    EXPECT_TRUE(fs::exists(path / "inner" / "file"));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(Files, AFailedWriteLeavesTheOldFileAndNothingElse) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "file";
  write_file_atomic(path, "old");
  const auto fail = [&] {
    write_file_atomic(path, [](std::ostream& out) {
      out << "half of the new";
      throw Error("stopped");
    });
  };
  EXPECT_EQ(test::message_of(fail), "stopped");
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(Files, ReadingWhatIsNoFileNamesIt) {
  const TemporaryDirectory directory;
  const std::string absent = (directory / "absent").string();
  EXPECT_EQ(test::message_of([&] { read_file(absent); }), absent + ": cannot be read: No such file or directory");
  EXPECT_THROW(read_file(directory.path()), Error);
  EXPECT_THROW(write_file_atomic(directory.path(), "x"), Error);
}

// A process has no memory at address 0: reading there fails with EIO.
TEST(Files, AReadErrorIsNoEnd) {
  EXPECT_EQ(test::message_of([] { read_file("/proc/self/mem"); }),
            "/proc/self/mem: cannot be read: Input/output error");
  const int input = ::dup(STDIN_FILENO);
  const int memory = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::dup2(memory, STDIN_FILENO), STDIN_FILENO);
  EXPECT_EQ(test::message_of([] { read_standard_input(); }), "standard input: cannot be read: Input/output error");
  ::dup2(input, STDIN_FILENO);
  ::close(memory);
  ::close(input);
}

TEST(Files, WhatCannotBeSyncedIsNotWritten) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "file";
  write_file_atomic(path, "old");
  sync_fails = true;
  EXPECT_EQ(test::message_of([&] { write_file_atomic(path, "new"); }),
            path.string() + ": writing failed: Input/output error");
  sync_fails = false;
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(entries(directory.path()), 1U);
}

// Each name on the way to an output is in a directory that was synced after the name was made.
TEST(Files, TheDirectoriesThatAreMadeForThemSurviveAPowerFailure) {
  const TemporaryDirectory directory;
  const auto above = [&] {
    size_t count = 0;
    for (const char* each : {"", "a", "a/b", "a/b/c"}) count += synced.count(inode_of(directory / each));
    fs::remove_all(directory / "a");
    synced.clear();
    return count;
  };
  synced.clear();
  write_file_atomic(directory / "a/b/c/file", "x");
  EXPECT_EQ(above(), 4U);
  write_directory_atomic(directory / "a/b/c/out", "test", [](const fs::path&) {});
  EXPECT_EQ(above(), 4U);
  claim_output_directory(directory / "a/b/c/", "run");
  EXPECT_EQ(above(), 4U);
}

TEST(Files, AFullDeviceIsAnError) {
  EXPECT_EQ(test::message_of([] { write_output_file("/dev/full", "x"); }),
            "/dev/full: writing failed: No space left on device");
}

TEST(Files, NeverReplaceADeviceOrAPipe) {
  const TemporaryDirectory directory;
  const fs::path pipe = directory / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(test::message_of([&] { write_file_atomic(pipe, "x"); }),
            pipe.string() + ": is a device or a pipe, which is not replaced by a file");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(Files, ALargeFileArrivesWhole) {
  const TemporaryDirectory directory;
  std::string content;
  for (int i = 0; i < 100000; ++i) content += std::to_string(i);
  write_file_atomic(directory / "file", [&](std::ostream& out) {
    for (size_t at = 0; at < content.size(); at += 7) out << content.substr(at, 7);
  });
  EXPECT_EQ(read_file(directory / "file"), content);
}

TEST(OutputFiles, AreCheckedWithoutBeingMade) {
  const TemporaryDirectory directory;
  check_output_file(directory / "new");
  check_output_file(directory / "a/b/new");
  EXPECT_EQ(entries(directory.path()), 0U);
  put(directory / "file", "x");
  check_output_file(directory / "file");
  check_output_file("/dev/full");
  EXPECT_EQ(read_file(directory / "file"), "x");
  EXPECT_EQ(entries(directory.path()), 1U);
  const std::string below = (directory / "file" / "below").string();
  EXPECT_EQ(test::message_of([&] { check_output_file(below); }), below + ": cannot be written: Not a directory");
  EXPECT_THROW(check_output_file(directory.path()), Error);
  EXPECT_THROW(check_output_file("/proc/new"), Error);
}

TEST(Files, LinesLoseTheirEndsAndTheByteOrderMark) {
  const TemporaryDirectory directory;
  put(directory / "text", "\xEF\xBB\xBFone\r\n\ntwo\n");
  EXPECT_EQ(read_lines(directory / "text"), (std::vector<std::string>{"one", "", "two"}));
  put(directory / "text", "no end");
  EXPECT_EQ(read_lines(directory / "text"), std::vector<std::string>{"no end"});
  put(directory / "text", "");
  EXPECT_TRUE(read_lines(directory / "text").empty());
}

TEST(Files, TheFirstLineThatIsNotUtf8IsNamed) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "latin1";
  put(path, "gut\nsch\xF6n\n\xFF\n");
  EXPECT_EQ(test::message_of([&] { read_lines(path); }), path.string() + ":2: not valid UTF-8");
}

TEST(Files, ThatTheUserNamesMayBeAPipeOrALink) {
  const TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  std::string received;
  std::thread reader([&] { received = read_file(directory / "pipe", kNamedInput); });
  write_output_file(directory / "pipe", "through");
  reader.join();
  EXPECT_EQ(received, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(directory / "pipe"));

  put(directory / "target", "old");
  std::filesystem::create_symlink("target", directory / "link");
  write_output_file(directory / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(directory / "link"));
  EXPECT_EQ(read_file(directory / "target"), "new");
}

TEST(Files, AreNeverWrittenThroughALink) {
  const TemporaryDirectory directory;
  put(directory / "mine", "precious");
  std::filesystem::create_symlink("mine", directory / "result.json");
  write_file_atomic(directory / "result.json", "new");
  EXPECT_EQ(read_file(directory / "mine"), "precious");
  EXPECT_EQ(read_file(directory / "result.json"), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(directory / "result.json"));
}

TEST(Files, KeepTheirPermissions) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "secret";
  put(path, "old");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  write_file_atomic(path, "new");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(Files, AreWrittenByThreadsThatDoNotKnowOfEachOther) {
  const TemporaryDirectory directory;
  const std::string one(100000, '1'), two(100000, '2');
  const auto write = [&](const std::string& content) {
    for (int i = 0; i < 20; ++i) write_file_atomic(directory / "file", content);
  };
  std::thread other([&] { write(two); });
  write(one);
  other.join();
  const std::string content = read_file(directory / "file");
  EXPECT_TRUE(content == one || content == two);
  EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(Input, IsAFileWithinItsLimits) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "file", pipe = directory / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  put(path, "12345");
  EXPECT_EQ(read_file(path, {.bytes = 5}), "12345");
  EXPECT_EQ(test::message_of([&] { read_file(path, {.bytes = 4}); }),
            path.string() + ": has 5 bytes; at most 4 are read here");
  EXPECT_EQ(test::message_of([&] { read_file(pipe); }), pipe.string() + ": is a pipe, not a file");
  EXPECT_EQ(test::message_of([&] { read_file("/dev/zero"); }), "/dev/zero: is a device, not a file");
  EXPECT_EQ(test::message_of([&] { read_file("/dev/zero", kNamedInput); }), "/dev/zero: is a device, not a file");
  EXPECT_EQ(test::message_of([&] { read_file(directory.path()); }),
            directory.path().string() + ": is a directory, not a file");
  EXPECT_EQ(read_file("/dev/null"), "");
  EXPECT_THROW(MappedFile{pipe}, Error);
  EXPECT_THROW(MappedFile{"/dev/zero"}, Error);
  fs::resize_file(path, uint64_t{1} << 30);  // a sparse file
  EXPECT_THROW(read_json(path, kSettingsFile), Error);
}

TEST(MappedFile, ShowsTheBytesOfTheFile) {
  const TemporaryDirectory directory;
  put(directory / "bytes", "abc");
  MappedFile mapped(directory / "bytes");
  ASSERT_EQ(mapped.bytes().size(), 3U);
  EXPECT_EQ(mapped.bytes()[2], std::byte{'c'});
  const MappedFile moved = std::move(mapped);
  EXPECT_EQ(moved.bytes()[0], std::byte{'a'});
  put(directory / "empty", "");
  EXPECT_TRUE(MappedFile(directory / "empty").bytes().empty());
  EXPECT_THROW(MappedFile(directory / "absent"), Error);
}

}  // namespace
}  // namespace plumb
