// The forks in which tests run command lines (support/loaded_program.h) do what processes that start anew do.
#include <gtest/gtest.h>

#include <cstdlib>

#include "plumb/base/files.h"
#include "plumb/base/text.h"
#include "support/fast_directory.h"
#include "support/process.h"

namespace plumb {
namespace {

std::optional<int> status_in_fork(const std::vector<std::string>& words, const std::filesystem::path& folder) {
  const test::LoadedProgram::Files files = {"/dev/null", folder / "output", folder / "errors"};
  return test::LoadedProgram::of_this_process().status_of(words, folder, files);
}

TEST(LoadedProgram, AnswersAsAProcessThatStartsAnew) {
  const test::FastDirectory folder;
  using Words = std::vector<std::string>;
  for (const Words& words : {Words{}, {"list", "norm"}, {"nonsense"}, {"probe"}, {"runs", "."}, {"runs", "nowhere"}}) {
    SCOPED_TRACE(words.empty() ? "" : words.front());
    const test::Finished fork = test::run_plumb(words, folder.path());
    const test::Finished process = test::Process(test::plumb_program(), words, folder.path()).wait();
    EXPECT_EQ(fork.status, process.status);
    EXPECT_EQ(fork.output, process.output);
    EXPECT_EQ(fork.errors, process.errors);
  }
}

TEST(LoadedProgram, IsNotUsedWhereLibrariesWouldReadOtherVariables) {
  if (test::loaded_program().empty()) GTEST_SKIP() << "builds with sanitizers start the program anew each time";
  const test::FastDirectory folder;
  EXPECT_EQ(status_in_fork({"--version"}, folder.path()), 0);
  ::setenv("LD_OF_A_TEST", "1", 1);
  EXPECT_FALSE(status_in_fork({"--version"}, folder.path()).has_value());
  ::unsetenv("LD_OF_A_TEST");
  EXPECT_EQ(status_in_fork({"--version"}, folder.path()), 0);
}

// The address space suffices for the module of the commands that only read, but not for LibTorch.
TEST(Program, ReadsRunsWithoutLibTorch) {
  if (test::loaded_program().empty()) GTEST_SKIP() << "sanitizers need more address space";
  const test::FastDirectory folder;
  claim_output_directory(folder.path() / "run", "run");
  write_file_atomic(folder.path() / "run" / "config.toml", "[train]\nlearning_rate = 0.001\n");
  write_file_atomic(folder.path() / "logs/runs.csv", "arm,seed,loss\na,1,2.5\na,2,2.25\nb,1,1.5\nb,2,1.75\n");
  write_file_atomic(folder.path() / "text", "one two three four\n");
  const auto limited = [&](const std::string& words) {
    const std::string command = "ulimit -v 400000; exec " + test::plumb_program() + " " + words;
    return test::Process("sh", {"-c", command}, folder.path()).wait();
  };
  for (const char* words : {"judge logs", "compare a=text b=text", "runs run", "report run --out page.html",
                            "report logs --out page.html", "score text"}) {
    SCOPED_TRACE(words);
    const test::Finished found = limited(words), wanted = test::run_plumb(split(words, ' '), folder.path());
    EXPECT_EQ(found.status, wanted.status);
    EXPECT_EQ(found.output, wanted.output);
    EXPECT_EQ(found.errors, wanted.errors);
  }
  EXPECT_NE(limited("list norm --verbose").status, 0);  // which shows that the limit is below what LibTorch needs
}

}  // namespace
}  // namespace plumb
