// Directories that are written and replaced as a whole, and what killed processes leave of them.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <functional>

#include "base/small_files.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "support/errors.h"
#include "support/paths.h"

// A system call that tests can make fail. The program's own definition takes precedence over the C library's.
namespace {
bool exchange_fails = false;
}  // namespace

extern "C" int renameat2(int from, const char* old_name, int to, const char* new_name, unsigned int flags) noexcept {
  if (!exchange_fails || flags == 0)
    return static_cast<int>(::syscall(SYS_renameat2, from, old_name, to, new_name, flags));
  errno = EINVAL;  // as on NFS, 9p and FUSE
  return -1;
}

namespace plumb {
namespace {

namespace fs = std::filesystem;
using test::entries;
using test::put;
using test::TemporaryDirectory;

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

}  // namespace
}  // namespace plumb
