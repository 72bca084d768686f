#include "plumb/data/split.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

using Sequences = std::vector<std::vector<int32_t>>;
using test::TemporaryDirectory;

const Sequences kSources = {{5, 6, 7}, {}, {8}};
const Sequences kTargets = {{9}, {10, 11}, {2147483647, 4}};

std::string message_of_open(const std::filesystem::path& path) {
  return test::message_of([&] { Split::open(path).verify(); });
}

TEST(Split, IsAFile) {
  const TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  EXPECT_CONTAINS(message_of_open(directory / "pipe"), "is a pipe");
  EXPECT_CONTAINS(message_of_open("/dev/zero"), "is a device");
  EXPECT_CONTAINS(message_of_open(directory.path()), "is a directory");
}

TEST(Split, RoundTrip) {
  const TemporaryDirectory directory;
  write_split(directory / "s", kSources, kTargets);
  Split copy = Split::open(directory / "s");
  {
    const Split split = Split::open(directory / "s");
    copy = split;
  }
  ASSERT_EQ(copy.size(), 3);
  for (int64_t i = 0; i < 3; ++i) {
    const auto source = copy.source(i);
    const auto target = copy.target(i);
    EXPECT_EQ(std::vector<int32_t>(source.begin(), source.end()), kSources[static_cast<size_t>(i)]);
    EXPECT_EQ(std::vector<int32_t>(target.begin(), target.end()), kTargets[static_cast<size_t>(i)]);
  }
  EXPECT_EQ(copy.source_tokens(), 4);
  EXPECT_EQ(copy.target_tokens(), 5);
}

TEST(Split, Empty) {
  const TemporaryDirectory directory;
  write_split(directory / "s", {}, {});
  EXPECT_EQ(Split::open(directory / "s").size(), 0);
}

TEST(Split, SidesOfUnequalLength) {
  const TemporaryDirectory directory;
  EXPECT_THROW(write_split(directory / "s", kSources, {{1}}), Error);
  EXPECT_FALSE(std::filesystem::exists(directory / "s"));
}

TEST(Split, EveryTruncationIsNoticed) {
  const TemporaryDirectory directory;
  write_split(directory / "s", kSources, kTargets);
  const std::string whole = read_file(directory / "s");
  for (size_t size = 0; size < whole.size(); ++size) {
    write_file_atomic(directory / "cut", whole.substr(0, size));
    EXPECT_CONTAINS(message_of_open(directory / "cut"), "truncated") << size;
  }
  write_file_atomic(directory / "long", whole + "x");
  EXPECT_CONTAINS(message_of_open(directory / "long"), "damaged");
}

TEST(Split, EveryDamagedByteIsNoticed) {
  const TemporaryDirectory directory;
  write_split(directory / "s", kSources, kTargets);
  const std::string whole = read_file(directory / "s");
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x41);
    write_file_atomic(directory / "damaged", damaged);
    EXPECT_NE(message_of_open(directory / "damaged"), "accepted") << i;
  }
}

TEST(Split, ReadsTheWholeFileOnlyToVerifyIt) {
  const TemporaryDirectory directory;
  write_split(directory / "s", kSources, kTargets);
  std::string damaged = read_file(directory / "s");
  damaged.back() = static_cast<char>(damaged.back() ^ 1);  // in the last id
  write_file_atomic(directory / "s", damaged);
  const Split split = Split::open(directory / "s");
  EXPECT_EQ(split.size(), 3);
  EXPECT_EQ(split.target_tokens(), 5);
  const Split copy = split;  // NOLINT(performance-unnecessary-copy-initialization): it is what is tested
  EXPECT_THROW(copy.verify(), Error);
  EXPECT_THROW(split.verify(), Error);  // a failure is not mistaken for a success
}

TEST(Split, OtherFiles) {
  const TemporaryDirectory directory;
  write_file_atomic(directory / "text", std::string(200, 'x'));
  EXPECT_CONTAINS(message_of_open(directory / "text"), "not a file of token sequences");
  EXPECT_CONTAINS(message_of_open(directory / "none"), "cannot be read");
}

}  // namespace
}  // namespace plumb
