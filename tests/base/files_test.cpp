#include "plumb/base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "support/errors.h"
#include "support/paths.h"

// System calls that tests can make fail. The program's own definitions take precedence over the C library's.
namespace {
bool exchange_fails = false;
bool sync_fails = false;
thread_local std::set<ino_t> synced;  // files and directories

ino_t inode_of(const std::filesystem::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}
}  // namespace

extern "C" int renameat2(int from, const char* old_name, int to, const char* new_name, unsigned int flags) noexcept {
  if (!exchange_fails || flags == 0)
    return static_cast<int>(::syscall(SYS_renameat2, from, old_name, to, new_name, flags));
  errno = EINVAL;  // as on NFS, 9p and FUSE
  return -1;
}

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
using test::TemporaryDirectory;

void put(const fs::path& path, std::string_view content) { std::ofstream(path, std::ios::binary) << content; }

size_t entries(const fs::path& directory) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

TEST(Files, WritesAtomicallyAndMakesTheDirectory) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "a/b/file";
  write_file_atomic(path, std::string_view("one\0two", 7));
  EXPECT_EQ(read_file(path), std::string("one\0two", 7));
  write_file_atomic(path, "three");
  EXPECT_EQ(read_file(path), "three");
  EXPECT_EQ(entries(path.parent_path()), 1U);
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

/// Fills a data directory with one file.
std::function<void(const fs::path&)> data_of(const std::string& name, const std::string& content) {
  return [=](const fs::path& at) {
    claim_output_directory(at, "data");
    put(at / name, content);
  };
}

/// The only entry of a directory that begins with `beginning`.
fs::path entry_of(const fs::path& directory, std::string_view beginning) {
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.path().filename().string().starts_with(beginning)) return entry.path();
  return {};
}

TEST(Directories, AreReplacedAsAWhole) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "data";
  write_directory_atomic(path, "data", data_of("old", "1"));
  write_directory_atomic(path, "data", data_of("new", "2"));
  EXPECT_FALSE(fs::exists(path / "old"));
  EXPECT_EQ(read_file(path / "new"), "2");
  EXPECT_EQ(entries(path), 2U);
  EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(Directories, AreReplacedWhereNamesCannotBeExchanged) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "data";
  exchange_fails = true;
  for (const char* content : {"1", "2", "3"}) write_directory_atomic(path, "data", data_of(content, content));
  exchange_fails = false;
  EXPECT_EQ(entries(path), 2U);
  EXPECT_EQ(read_file(path / "3"), "3");
  EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(Directories, AKillBetweenTwoRenamesLosesNothing) {
  const TemporaryDirectory directory;
  const auto kill_after_the_first = [&] {
    const fs::path old = temporary_beside(directory / "best");
    fs::create_directories(old);
    put(old / "state.json", "old");
    put(old / ".plumb-replaced", "");
  };
  const auto fails = [](const fs::path&) { throw Error("no"); };
  kill_after_the_first();
  clear_unfinished(directory.path());
  EXPECT_EQ(read_file(directory / "best" / "state.json"), "old");
  EXPECT_EQ(entries(directory / "best"), 1U);
  EXPECT_EQ(entries(directory.path()), 1U);

  kill_after_the_first();  // now killed after the second rename: both exist
  clear_unfinished(directory.path());
  EXPECT_EQ(entries(directory.path()), 1U);

  fs::create_directory(directory / "best.plumb-tmp-0123456789abcdef");  // killed before the mark
  clear_unfinished(directory.path());
  EXPECT_EQ(entries(directory.path()), 1U);

  const fs::path complete = temporary_beside(directory / "best");  // killed between the mark's removal and the rename
  fs::create_directory(complete);
  put(complete / "state.json", "new");
  clear_unfinished(directory.path());
  EXPECT_EQ(entries(directory.path()), 1U);
  EXPECT_EQ(read_file(directory / "best" / "state.json"), "old");

  fs::remove_all(directory / "best");
  kill_after_the_first();
  EXPECT_EQ(test::message_of([&] { write_directory_atomic(directory / "best", "checkpoint", fails); }), "no");
  EXPECT_EQ(read_file(directory / "best" / "state.json"), "old");
}

TEST(Directories, LeftByAKilledProcessAreRemovedByTheNextThatWritesThere) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "data";
  int alive[2];
  ASSERT_EQ(::pipe(alive), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    write_directory_atomic(path, "data", [&](const fs::path& at) {
      put(at / "half", "1");
      (void)!::write(alive[1], "x", 1);
      ::pause();
    });
  }
  char byte = 0;
  ASSERT_EQ(::read(alive[0], &byte, 1), 1);
  const fs::path left = entry_of(directory.path(), "data.plumb-tmp-");
  EXPECT_TRUE(is_unfinished(left));
  write_directory_atomic(path, "data", data_of("whole", "2"));
  EXPECT_TRUE(fs::exists(left / "half")) << "the process is alive";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);

  // None of these is what a killed process has left of this directory.
  const std::string digits = left.string().substr(left.string().size() - 16);
  std::vector<fs::path> others;
  for (const std::string& name :
       {"data.plumb-tmp-" + digits + "0", std::string("data.plumb-tmp-backup"), std::string("data.plumb-tmp-"),
        "data2.plumb-tmp-" + digits, "my data.plumb-tmp-" + digits, std::string("data.tmp-12"),
        std::string("data.old-thesis")}) {
    fs::copy(left, directory / name);
    others.push_back(directory / name / "half");
  }
  others.push_back(temporary_beside(path));  // only the name is the same
  fs::create_directory(others.back());
  const fs::path elsewhere = directory / "elsewhere";
  fs::copy(left, elsewhere);
  others.push_back(elsewhere / "half");
  fs::create_directory_symlink(elsewhere, temporary_beside(path));
  others.push_back(temporary_beside(path));
  put(others.back(), "a file");

  write_directory_atomic(path, "data", data_of("whole", "3"));
  EXPECT_FALSE(fs::exists(left));
  for (const fs::path& other : others) EXPECT_TRUE(fs::exists(other)) << other;
  EXPECT_FALSE(is_unfinished(path));
  EXPECT_EQ(entries(path), 2U);
}

TEST(Directories, ACheckpointWhoseRemovalWasInterruptedIsReplaced) {
  const TemporaryDirectory directory;
  const fs::path best = directory / "best";
  fs::create_directory(best);
  put(best / "state.json", "old");
  put(best / ".plumb-unfinished", "");
  write_directory_atomic(best, "checkpoint", [](const fs::path& at) { put(at / "state.json", "new"); });
  EXPECT_EQ(read_file(best / "state.json"), "new");
  EXPECT_EQ(entries(best), 1U);
}

TEST(Directories, OfAnotherMachineCountAsAbandonedAfterADay) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "data";
  const fs::path left = temporary_beside(path), mark = left / ".plumb-unfinished";
  fs::create_directory(left);
  put(mark, "plumb another-boot\n");
  write_directory_atomic(path, "data", data_of("whole", "1"));
  EXPECT_TRUE(fs::exists(left));
  fs::last_write_time(mark, fs::last_write_time(mark) - std::chrono::hours(25));
  write_directory_atomic(path, "data", data_of("whole", "2"));
  EXPECT_FALSE(fs::exists(left));
}

TEST(Directories, OfTheUserAreNeitherReplacedNorCleared) {
  const TemporaryDirectory directory;
  const fs::path documents = directory / "documents";
  fs::create_directories(documents);
  put(documents / "letter", "mine");
  fs::create_directory_symlink("documents", directory / "link");
  const auto never = [](const fs::path&) { FAIL() << "the work has begun"; };
  for (const char* kind : {"data", "run", "checkpoint"}) {
    EXPECT_EQ(test::message_of([&] { write_directory_atomic(documents, kind, never); }),
              documents.string() + ": exists and was not created by Plumb");
    EXPECT_CONTAINS(test::message_of([&] { write_directory_atomic(directory / "link", kind, never); }),
                    "is a symbolic link");
    EXPECT_THROW(write_directory_atomic(directory / "link", kind, never, Links::followed), Error);
  }
  claim_output_directory(directory / "run", "run");
  EXPECT_EQ(test::message_of([&] { write_directory_atomic(directory / "run", "data", never); }),
            (directory / "run").string() + ": is a run directory, not a data directory");

  for (const char* name : {"notes.tmp-2", "my.tmp-plots", "best.old-good", "x.plumb-tmp-12"}) {
    fs::create_directory(directory / name);
    put(directory / name / "mine", "1");
  }
  put(temporary_beside(directory / "state.json"), "left by a kill");
  clear_unfinished(directory.path());
  EXPECT_EQ(entries(directory.path()), 7U);
  EXPECT_EQ(read_file(documents / "letter"), "mine");
}

TEST(Directories, ThatCannotBeRenamedAreFilledWhereTheyAre) {
  const TemporaryDirectory directory;
  const fs::path before = fs::current_path(), work = directory / "work";
  fs::create_directory(work);
  fs::current_path(work);
  struct stat first {
  }, second{};
  ::stat(".", &first);
  write_directory_atomic(".", "data", data_of("whole", "1"));
  ::stat(work.c_str(), &second);
  EXPECT_EQ(first.st_ino, second.st_ino);
  EXPECT_EQ(read_file(work / "whole"), "1");
  EXPECT_EQ(entries(work), 2U);
  const auto never = [](const fs::path&) { FAIL() << "the work has begun"; };
  EXPECT_CONTAINS(test::message_of([&] { write_directory_atomic(".", "data", never); }), "cannot be replaced");
  fs::current_path(before);
  EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(Directories, ASymbolicLinkOfTheUserIsFollowed) {
  const TemporaryDirectory directory;
  for (const std::string target : {"present", "absent"}) {
    const fs::path link = directory / ("link to " + target);
    if (target == "present") fs::create_directory(directory / target);
    fs::create_directory_symlink(target, link);
    write_directory_atomic(link, "data", data_of("content", "1"), Links::followed);
    EXPECT_TRUE(fs::is_symlink(link)) << target;
    EXPECT_EQ(read_file(directory / target / "content"), "1");
  }
  fs::create_directory_symlink("run", directory / "link");
  claim_output_directory(directory / "link", "run");
  EXPECT_TRUE(fs::exists(directory / "run" / "plumb.json"));
  fs::create_directory_symlink("loop", directory / "loop");
  const auto nothing = [](const fs::path&) {};
  EXPECT_THROW(write_directory_atomic(directory / "loop", "data", nothing, Links::followed), Error);
}

TEST(Directories, AreRemovedByTheirOwnersOnly) {
  const TemporaryDirectory directory;
  fs::create_directories(directory / "documents");
  put(directory / "documents" / "letter", "mine");
  fs::create_directory_symlink("documents", directory / "step-000001");
  remove_directory_atomic(directory / "step-000001");
  fs::create_directories(directory / "step-000002" / "inner");
  remove_directory_atomic(directory / "step-000002");
  EXPECT_EQ(entries(directory.path()), 1U);
  EXPECT_EQ(read_file(directory / "documents" / "letter"), "mine");
}

TEST(Directories, HaveNamesInUtf8) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "r\xFF";
  EXPECT_THROW(check_output_directory(path, "run"), Error);
  EXPECT_THROW(claim_output_directory(path, "run"), Error);
  EXPECT_EQ(entries(directory.path()), 0U);
}

TEST(Directories, WithAForeignMarkAreNotOurs) {
  const TemporaryDirectory directory;
  for (const char* mark : {"[]", "{}", R"({"kind": 3})", "null"}) {
    put(directory / "plumb.json", mark);
    EXPECT_EQ(test::message_of([&] { require_directory(directory.path(), "run"); }),
              directory.path().string() + ": is not a run directory");
    EXPECT_EQ(test::message_of([&] { claim_output_directory(directory.path(), "run"); }),
              directory.path().string() + ": exists and was not created by Plumb");
  }
}

TEST(Directories, AFailureLeavesTheOldOne) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "data";
  write_directory_atomic(path, "data", data_of("old", "1"));
  const auto fail = [&] {
    write_directory_atomic(path, "data", [](const fs::path& at) {
      put(at / "half", "2");
      throw Error("stopped");
    });
  };
  EXPECT_EQ(test::message_of(fail), "stopped");
  EXPECT_EQ(read_file(path / "old"), "1");
  EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(Directories, AreClaimedOnceAndRecognizedAgain) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "out/run";
  EXPECT_FALSE(claim_output_directory(path, "run"));
  EXPECT_TRUE(claim_output_directory(path, "run"));
  EXPECT_EQ(read_json(path / "plumb.json").at("kind"), "run");
  EXPECT_NO_THROW(require_directory(path, "run"));
  EXPECT_THROW(require_directory(path, "data"), Error);
  EXPECT_THROW(require_directory(directory / "absent", "run"), Error);
  EXPECT_EQ(test::message_of([&] { claim_output_directory(path, "study"); }),
            path.string() + ": is a run directory, not a study directory");
}

TEST(Directories, ThatHoldSomethingElseStayUntouched) {
  const TemporaryDirectory directory;
  put(directory / "thesis.tex", "precious");
  EXPECT_THROW(claim_output_directory(directory.path(), "run"), Error);
  EXPECT_THROW(claim_output_directory(directory / "thesis.tex", "run"), Error);
  EXPECT_EQ(entries(directory.path()), 1U);
  EXPECT_EQ(read_file(directory / "thesis.tex"), "precious");
}

TEST(Directories, AreCheckedWithoutBeingMade) {
  const TemporaryDirectory directory;
  check_output_directory(directory / "new", "data");
  EXPECT_FALSE(fs::exists(directory / "new"));
  fs::create_directory(directory / "empty");
  check_output_directory(directory / "empty", "data");
  EXPECT_TRUE(fs::is_empty(directory / "empty"));
  claim_output_directory(directory / "ours", "data");
  check_output_directory(directory / "ours", "data");
  EXPECT_THROW(check_output_directory(directory / "ours", "run"), Error);
  EXPECT_THROW(check_output_directory("", "data"), Error);
  write_file_atomic(directory / "file", "x");
  EXPECT_THROW(check_output_directory(directory / "file", "data"), Error);
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
