// The forks in which tests run command lines (support/loaded_program.h) do what processes that start anew do.
#include <gtest/gtest.h>

#include <cstdlib>

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
  if (test::loaded_program().empty()) GTEST_SKIP() << "this build does without it";
  const test::FastDirectory folder;
  EXPECT_EQ(status_in_fork({"--version"}, folder.path()), 0);
  ::setenv("LD_OF_A_TEST", "1", 1);
  EXPECT_FALSE(status_in_fork({"--version"}, folder.path()).has_value());
  ::unsetenv("LD_OF_A_TEST");
  EXPECT_EQ(status_in_fork({"--version"}, folder.path()), 0);
}

}  // namespace
}  // namespace plumb
