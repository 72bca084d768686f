#include "plumb/base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include <algorithm>
#include <fstream>

#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "support/paths.h"

namespace plumb {
namespace {
namespace fs = std::filesystem;
using test::TemporaryDirectory;

void put(const fs::path& path, std::string_view content) { std::ofstream(path, std::ios::binary) << content; }

size_t entries(const fs::path& directory) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no Error was thrown";
}

TEST(Files, WritesAtomicallyAndMakesTheDirectory) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "a/b/file";
  write_file_atomic(path, std::string_view("one\0two", 7));
  EXPECT_EQ(read_file(path), std::string("one\0two", 7));
  write_file_atomic(path, "three");
  EXPECT_EQ(read_file(path), "three");
  EXPECT_EQ(entries(path.parent_path()), 1U);
}

TEST(Files, AFailedWriteLeavesTheOldFileAndNothingElse) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "file";
  write_file_atomic(path, "old");
  const auto fail = [&] {
    write_file_atomic(path, [](std::ostream& out) {
      out << "half of the new";
      throw Error("stopped");
    });
  };
  EXPECT_EQ(message_of(fail), "stopped");
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(Files, ReadingWhatIsNoFileNamesIt) {
  const TemporaryDirectory directory;
  const std::string absent = (directory / "absent").string();
  EXPECT_EQ(message_of([&] { read_file(absent); }), absent + ": cannot be read: No such file or directory");
  EXPECT_THROW(read_file(directory.path()), Error);
  EXPECT_THROW(write_file_atomic(directory.path(), "x"), Error);
}

TEST(Files, LinesLoseTheirEndsAndTheByteOrderMark) {
  const TemporaryDirectory directory;
  put(directory / "text", "\xEF\xBB\xBFone\r\n\ntwo\n");
  EXPECT_EQ(read_lines(directory / "text"), (std::vector<std::string>{"one", "", "two"}));
  put(directory / "text", "no end");
  EXPECT_EQ(read_lines(directory / "text"), std::vector<std::string>{"no end"});
  put(directory / "text", "");
  EXPECT_TRUE(read_lines(directory / "text").empty());
}

TEST(Files, TheFirstLineThatIsNotUtf8IsNamed) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "latin1";
  put(path, "gut\nsch\xF6n\n\xFF\n");
  EXPECT_EQ(message_of([&] { read_lines(path); }), path.string() + ":2: not valid UTF-8");
}

TEST(Utf8, AcceptsWellFormedTextOnly) {
  for (const char* good : {"", "a", "ß", "€", "😀", "\x7F", "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(is_valid_utf8(good)) << good;
  }
  // Stray continuation, truncated, overlong, surrogate, beyond U+10FFFF, byte that never occurs.
  for (const char* bad : {"\x80", "\xC3", "\xE2\x82", "\xC0\xAF", "\xE0\x80\xAF", "\xF0\x80\x80\xAF", "\xED\xA0\x80",
                          "\xF4\x90\x80\x80", "\xFF", "a\xC3(b"}) {
    EXPECT_FALSE(is_valid_utf8(bad)) << bad;
  }
}

TEST(Directories, AreReplacedAsAWhole) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "checkpoint";
  write_directory_atomic(path, [](const fs::path& at) { put(at / "old", "1"); });
  write_directory_atomic(path, [](const fs::path& at) { put(at / "new", "2"); });
  EXPECT_FALSE(fs::exists(path / "old"));
  EXPECT_EQ(read_file(path / "new"), "2");
  EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(Directories, AFailureLeavesTheOldOne) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "checkpoint";
  write_directory_atomic(path, [](const fs::path& at) { put(at / "old", "1"); });
  const auto fail = [&] {
    write_directory_atomic(path, [](const fs::path& at) {
      put(at / "half", "2");
      throw Error("stopped");
    });
  };
  EXPECT_EQ(message_of(fail), "stopped");
  EXPECT_EQ(read_file(path / "old"), "1");
  EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(Directories, AreClaimedOnceAndRecognisedAgain) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "out/run";
  EXPECT_FALSE(claim_output_directory(path, "run"));
  EXPECT_TRUE(claim_output_directory(path, "run"));
  EXPECT_EQ(read_json(path / "plumb.json").at("kind"), "run");
  EXPECT_NO_THROW(require_directory(path, "run"));
  EXPECT_THROW(require_directory(path, "data"), Error);
  EXPECT_THROW(require_directory(directory / "absent", "run"), Error);
  EXPECT_EQ(message_of([&] { claim_output_directory(path, "study"); }),
            path.string() + ": is a run directory, not a study directory");
}

TEST(Directories, ThatHoldSomethingElseStayUntouched) {
  const TemporaryDirectory directory;
  put(directory / "thesis.tex", "precious");
  EXPECT_THROW(claim_output_directory(directory.path(), "run"), Error);
  EXPECT_THROW(claim_output_directory(directory / "thesis.tex", "run"), Error);
  EXPECT_EQ(entries(directory.path()), 1U);
  EXPECT_EQ(read_file(directory / "thesis.tex"), "precious");
}

TEST(Directories, AreCheckedWithoutBeingMade) {
  const TemporaryDirectory directory;
  check_output_directory(directory / "new", "data");
  EXPECT_FALSE(fs::exists(directory / "new"));
  fs::create_directory(directory / "empty");
  check_output_directory(directory / "empty", "data");
  EXPECT_TRUE(fs::is_empty(directory / "empty"));
  claim_output_directory(directory / "ours", "data");
  check_output_directory(directory / "ours", "data");
  EXPECT_THROW(check_output_directory(directory / "ours", "run"), Error);
  EXPECT_THROW(check_output_directory("", "data"), Error);
  write_file_atomic(directory / "file", "x");
  EXPECT_THROW(check_output_directory(directory / "file", "data"), Error);
}

TEST(Files, APipeIsWrittenToAndALinkFollowed) {
  const TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  std::string received;
  std::thread reader([&] { received = read_file(directory / "pipe"); });
  write_file_atomic(directory / "pipe", "through");
  reader.join();
  EXPECT_EQ(received, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(directory / "pipe"));

  put(directory / "target", "old");
  std::filesystem::create_symlink("target", directory / "link");
  write_file_atomic(directory / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(directory / "link"));
  EXPECT_EQ(read_file(directory / "target"), "new");
}

TEST(MappedFile, ShowsTheBytesOfTheFile) {
  const TemporaryDirectory directory;
  put(directory / "bytes", "abc");
  MappedFile mapped(directory / "bytes");
  ASSERT_EQ(mapped.bytes().size(), 3U);
  EXPECT_EQ(mapped.bytes()[2], std::byte{'c'});
  const MappedFile moved = std::move(mapped);
  EXPECT_EQ(moved.bytes()[0], std::byte{'a'});
  put(directory / "empty", "");
  EXPECT_TRUE(MappedFile(directory / "empty").bytes().empty());
  EXPECT_THROW(MappedFile(directory / "absent"), Error);
}

}  // namespace
}  // namespace plumb
