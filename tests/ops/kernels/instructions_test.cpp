// Counts the kernels' instructions with callgrind, a measure of speed that other load on the machine does not affect.
// After an intended change, enter the new count in the table below.
#include <gtest/gtest.h>

#include <regex>

#include "support/process.h"

namespace plumb {
namespace {

struct Count {
  const char* kernel;
  double instructions;  // GCC 12, AVX2
};

class Instructions : public ::testing::TestWithParam<Count> {};

TEST_P(Instructions, AreAsManyAsRecorded) {
#if !defined(PLUMB_KERNEL_INSTRUCTIONS)
  GTEST_SKIP() << "not counted in a build with sanitizers or without the vector kernels";
#elif defined(__clang__) || !defined(__GNUC__) || __GNUC__ != 12 || !defined(__x86_64__)
  GTEST_SKIP() << "the counts are those of GCC 12 on x86-64";
#else
  const auto finished =
      test::Process("valgrind", {"--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=counted",
                                 PLUMB_KERNEL_INSTRUCTIONS, GetParam().kernel})
          .wait();
  if (finished.status == 127) GTEST_SKIP() << "valgrind is absent (Debian: valgrind)";
  if (finished.status == 77) GTEST_SKIP() << "this machine has no AVX2";
  ASSERT_EQ(finished.status, 0) << finished.errors;
  std::smatch match;
  ASSERT_TRUE(std::regex_search(finished.errors, match, std::regex("Collected : ([0-9]+)"))) << finished.errors;
  const double found = std::stod(match[1]);
  RecordProperty("instructions", match[1]);
  EXPECT_NEAR(found / GetParam().instructions, 1, 0.1) << found << " instructions";
#endif
}

INSTANTIATE_TEST_SUITE_P(Kernels, Instructions,
                         ::testing::Values(Count{"norm", 88984}, Count{"attention", 147666},
                                           Count{"cross-entropy", 75724}),
                         [](const auto& test) {
                           std::string name = test.param.kernel;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace plumb
