#include "plumb/base/process.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

TEST(Process, ItsEndIsKnown) {
  EXPECT_EQ(run_process({"sh", "-c", "exit 3"}, {}), 3);
  EXPECT_EQ(run_process({"sh", "-c", "kill -9 $$"}, {}), -1);
  test::expect_error([] { (void)run_process({"no-such-program"}, {}); }, "cannot run the program `no-such-program`");
}

TEST(Process, HasItsOwnEnvironmentAndFiles) {
  const test::TemporaryDirectory folder;
  write_file_atomic(folder / "input", "line\n");
  ::setenv("PLUMB_TEST_VARIABLE", "old", 1);
  const ProcessOptions options = {.environment = {"PLUMB_TEST_VARIABLE=new"},
                                  .input = (folder / "input").string(),
                                  .output = (folder / "output").string(),
                                  .errors = (folder / "errors").string()};
  EXPECT_EQ(run_process({"sh", "-c", "read line; echo $line $PLUMB_TEST_VARIABLE; echo wrong >&2"}, options), 0);
  ::unsetenv("PLUMB_TEST_VARIABLE");
  EXPECT_EQ(read_file(folder / "output"), "line new\n");
  EXPECT_EQ(read_file(folder / "errors"), "wrong\n");
}

}  // namespace
}  // namespace plumb
