// The memory of `plumb data prepare` does not grow with the text.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "plumb/base/files.h"
#include "support/process.h"

namespace plumb {
namespace {

#ifndef __SANITIZE_ADDRESS__  // which keeps freed memory
/// The most memory that a child process has had so far, in bytes.
int64_t largest_child() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return int64_t{1024} * usage.ru_maxrss;
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
    const test::Finished finished =
        test::run_plumb({"data", "prepare", "--train", (directory / "de").string(), (directory / "en").string(),
                         "--valid", (directory / "valid.tsv").string(), "--vocabulary", "200", "--tokenizer-sample",
                         "2000", "--out", (directory / "out").string()});
    ASSERT_EQ(finished.status, 0) << finished.errors;
  };
  prepare(40'000);
  const int64_t small = largest_child();
  prepare(160'000);  // 120,000 pairs more: 23 MiB of text, and as many tokens of four bytes
  EXPECT_LT(largest_child() - small, int64_t{12} << 20);
}
#endif

}  // namespace
}  // namespace plumb
