// The memory of `plumb data prepare` does not grow with the text.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "plumb/base/files.h"
#include "support/process.h"

namespace plumb {
namespace {

#ifndef __SANITIZE_ADDRESS__  // it keeps freed memory
namespace fs = std::filesystem;

/// Runs `plumb` and returns its peak memory. The system's figure for ended processes would include the parent's memory
/// at the fork.
int64_t peak_of(const std::vector<std::string>& arguments) {
  test::Process process(test::plumb_program(), arguments);
  const fs::path program = fs::canonical(test::plumb_program()),
                 running = "/proc/" + std::to_string(process.id()) + "/exe";
  int64_t peak = 0;
  for (test::ProcessStatus status; !status.ended; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    std::error_code gone;
    const bool begun = fs::read_symlink(running, gone) == program;
    status = test::status_of(process.id());
    if (begun) peak = std::max(peak, status.peak);
  }
  test::succeeded(process.wait());
  return peak;
}

TEST(DataMemory, DoesNotGrowWithTheText) {
  const test::TemporaryDirectory directory;
  const auto prepare = [&](int64_t pairs) {
    for (const char* side : {"de", "en"}) {
      write_file_atomic(directory / side, [&](std::ostream& out) {
        for (int64_t i = 0; i < pairs; ++i)
          out << "a sentence of many words that are all the same but for its number, which is " << i << " of many\n";
      });
    }
    write_file_atomic(directory / "valid.tsv", "a sentence\tof words\n");
    return peak_of({"data", "prepare", "--train", (directory / "de").string(), (directory / "en").string(), "--valid",
                    (directory / "valid.tsv").string(), "--vocabulary", "200", "--tokenizer-sample", "2000", "--out",
                    (directory / "out").string()});
  };
  const int64_t small = prepare(40'000);
  EXPECT_GT(small, 0);
  // 120,000 more pairs: 23 MiB of text, and as many tokens of four bytes.
  EXPECT_LT(prepare(160'000) - small, int64_t{12} << 20);
}
#endif

}  // namespace
}  // namespace plumb
