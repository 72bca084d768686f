#include "plumb/base/input.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>
#include <vector>

#include "plumb/base/files.h"
#include "plumb/base/text.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_in(const fs::path& path, const InputLimits& limits = kNamedInput) {
  LineReader reader(path, limits);
  std::vector<std::string> lines;
  while (const auto line = reader.next()) lines.emplace_back(*line);
  return lines;
}

class LineReaderFiles : public testing::Test {
 protected:
  fs::path file(const std::string& content) {
    write_file_atomic(folder_.path() / "text", content);
    return folder_.path() / "text";
  }
  test::TemporaryDirectory folder_;
};

// Lines of all lengths around those in which a file is read.
TEST_F(LineReaderFiles, LinesMayBeginAnywhereInABlock) {
  for (const size_t length : {1U, 65'535U, 65'536U, 131'070U, 131'071U, 131'072U, 131'073U, 300'000U}) {
    const std::vector<std::string> lines = {std::string(length, 'a'), "", std::string(length, 'b') + "ß", "c"};
    EXPECT_EQ(lines_in(file(join(lines, "\n"))), lines) << length;
    EXPECT_EQ(lines_in(file(join(lines, "\r\n") + "\r\n")), lines) << length;
  }
}

TEST_F(LineReaderFiles, HowALineEndedIsKnown) {
  LineReader reader(file("a\r\nb\n\r\nc"));
  for (const bool with_cr : {true, false, true, false}) {
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.ended_with_cr(), with_cr) << reader.count();
  }
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.count(), 4);
}

TEST_F(LineReaderFiles, ALineHasALimit) {
  const fs::path path = file("first\n");
  fs::resize_file(path, 6 + LineReader::kLongestLine);  // without its content on the disk
  EXPECT_EQ(lines_in(path).at(1).size(), LineReader::kLongestLine);
  fs::resize_file(path, 7 + LineReader::kLongestLine);
  test::expect_error([&] { lines_in(path); }, "text:2: is longer than 64 MiB");
  fs::resize_file(path, uint64_t{1} << 40);
  test::expect_error([&] { lines_in(path); }, "at most");
}

TEST_F(LineReaderFiles, AFileHasALimit) {
  EXPECT_EQ(lines_in(file("12\n45\n"), {.bytes = 6}).size(), 2U);
  test::expect_error([&] { lines_in(file("12\n45\n7"), {.bytes = 6}); }, "text: has 7 bytes");
}

TEST_F(LineReaderFiles, PipesAreReadOnlyIfTheyMayBe) {
  const fs::path pipe = folder_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  test::expect_error([&] { lines_in(pipe, kLogFile); }, "pipe");  // and nobody waits for a writer
  const auto read_written = [&](const InputLimits& limits) {
    const std::jthread writer([&] { std::ofstream(pipe) << "a\nb\n"; });
    return lines_in(pipe, limits);
  };
  EXPECT_EQ(read_written(kNamedInput), (std::vector<std::string>{"a", "b"}));
  test::expect_error([&] { read_written({.bytes = 3, .pipes = true}); }, "pipe: has more than 3 bytes");
}

TEST_F(LineReaderFiles, DevicesAreNoText) {
  fs::create_symlink("/dev/zero", folder_.path() / "zero");
  for (const InputLimits& limits : {kLogFile, kNamedInput})
    test::expect_error([&] { lines_in(folder_.path() / "zero", limits); }, "zero: is a device");
  test::expect_error([&] { lines_in(folder_.path()); }, "is a directory");
}

}  // namespace
}  // namespace plumb
