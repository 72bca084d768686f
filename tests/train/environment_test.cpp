// The record of program and machine in a run directory.
#include "plumb/run/environment.h"

#include <gtest/gtest.h>

#include <regex>

#include "copy_task.h"
#include "plumb/base/input.h"
#include "plumb/run/directory.h"
#include "plumb/train/run_training.h"
#include "support/process.h"

namespace plumb {
namespace {

TEST(Environment, EveryStartOfARunIsNoted) {
  const test::TemporaryDirectory folder;
  test::make_copy_task(folder / "data");
  RunConfig config = test::copy_run(folder / "data");
  config.train.score_every = -1;
  (void)run_training(config, folder / "run", test::stop_after(7));
  (void)run_training(config, folder / "run");
  (void)run_training(config, folder / "run");  // already ended: nothing is trained
  const std::vector<std::string> lines = read_lines(folder / "run" / "environment.jsonl");
  ASSERT_EQ(lines.size(), 2U);
  const std::regex time(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)");
  for (size_t i = 0; i < 2; ++i) {
    const Json line = Json::parse(lines[i]);
    EXPECT_EQ(line["step"], i == 0 ? 0 : 7);
    EXPECT_EQ(line["processes"], 1);
    EXPECT_TRUE(std::regex_match(line["started"].get<std::string>(), time)) << line["started"];
    EXPECT_EQ(line["device"], "cpu");
    for (const char* key : {"plumb_version", "compiler", "libtorch", "host", "system", "command"})
      EXPECT_NE(line[key].get<std::string>(), "") << key;
    EXPECT_GE(line["cores"].get<int>(), line["threads"].get<int>() > 0 ? 1 : 99);
  }
}

TEST(Environment, NamesTheCommitOfTheSources) {
  const std::filesystem::path root = test::source_directory();
  if (!std::filesystem::exists(root / ".git")) GTEST_SKIP() << "no repository";
  const Json found = describe_environment();
  const std::string named = found.value("commit", "");
  EXPECT_TRUE(std::regex_match(named, std::regex("[0-9a-f]{40}"))) << named;
  const test::Finished known = test::Process("git", {"cat-file", "-t", named}, root).wait();
  if (known.status == 127) GTEST_SKIP() << "no git";
  EXPECT_EQ(known.output, "commit\n") << known.errors;
}

}  // namespace
}  // namespace plumb
