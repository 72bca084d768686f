// Runs the targets of `make fuzz` on the stored inputs, whole and truncated. A target that fails ends the program.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "plumb/base/input.h"

// Written by tests/CMakeLists.txt, which renames each target's function: PLUMB_FUZZ_TARGETS(X) is X(batch) X(config) …
#include "fuzz_targets.h"
#include "support/paths.h"

#define PLUMB_DECLARE(target) extern "C" int plumb_fuzz_##target(const uint8_t* data, size_t size);
PLUMB_FUZZ_TARGETS(PLUMB_DECLARE)
#undef PLUMB_DECLARE

namespace plumb {
namespace {

struct FuzzTarget {
  const char* name;
  int (*run)(const uint8_t* data, size_t size);
};

#define PLUMB_ENTRY(target) {#target, &plumb_fuzz_##target},
constexpr FuzzTarget kFuzzTargets[] = {PLUMB_FUZZ_TARGETS(PLUMB_ENTRY)};
#undef PLUMB_ENTRY

class FuzzSeeds : public testing::TestWithParam<FuzzTarget> {};

TEST_P(FuzzSeeds, AreReadOrRefused) {
  constexpr size_t kCuts = 8;
  const std::filesystem::path folder = test::source_directory() / "tests/fuzz/corpus" / GetParam().name;
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().string());
    const std::string seed = read_file(entry.path());
    for (size_t part = 0; part <= kCuts; ++part) {
      // A vector of this size, so that a sanitizer sees reads beyond its end.
      const std::vector<uint8_t> input(seed.begin(),
                                       seed.begin() + static_cast<std::ptrdiff_t>(seed.size() * part / kCuts));
      EXPECT_EQ(GetParam().run(input.data(), input.size()), 0);
    }
    ++count;
  }
  EXPECT_GT(count, 0U);
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzSeeds, testing::ValuesIn(kFuzzTargets),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(FuzzSeedsOfAllTargets, AreFew) {
  constexpr uintmax_t kMost = 200'000;
  uintmax_t bytes = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(test::source_directory() / "tests/fuzz/corpus"))
    if (entry.is_regular_file()) bytes += entry.file_size();
  EXPECT_LE(bytes, kMost);
}

}  // namespace
}  // namespace plumb
