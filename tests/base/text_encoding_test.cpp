#include "plumb/base/text_encoding.h"

#include <gtest/gtest.h>

#include <array>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"
#include "plumb/base/terminal.h"
#include "plumb/base/utf8.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

/// "what | hint".
template <typename Action>
std::string refusal(const Action& action) {
  const Error error = test::error_of(action);
  return std::string(error.what()) + " | " + error.hint();
}

TEST(TextEncoding, FilesOfOtherFormatsAreNamed) {
  const test::TemporaryDirectory directory;
  const std::string file = (directory / "text").string();
  const std::array<std::array<std::string, 2>, 5> cases = {
      {{std::string("\x1F\x8B\x08\0\0\xE9", 6),
        "is compressed by gzip, not text in UTF-8 | decompress it first: gunzip"},
       {std::string("\xFD") + "7zXZ\xE9", "is compressed by xz, not text in UTF-8 | decompress it first: unxz"},
       {"\x28\xB5\x2F\xFD\n", "is compressed by Zstandard, not text in UTF-8 | decompress it first: unzstd"},
       {std::string("\xFF\xFEh\0i\0\n\0", 8),
        "is text in UTF-16, not text in UTF-8 | convert it: iconv -f utf16 -t utf8"},
       {std::string("\xFE\xFF\0h\0i\0\n", 8),
        "is text in UTF-16, not text in UTF-8 | convert it: iconv -f utf16 -t utf8"}}};
  for (const auto& [content, wanted] : cases) {
    write_file_atomic(file, content);
    EXPECT_EQ(refusal([&] { (void)read_lines(file); }), file + ": " + wanted);
    LineReader reader(file);
    EXPECT_EQ(refusal([&] {
                while (reader.next()) {
                }
              }),
              file + ": " + wanted);
  }
  write_file_atomic(file, std::string_view("good\nsch\xF6n\n"));
  EXPECT_EQ(refusal([&] { (void)read_lines(file); }),
            file + ":2: not valid UTF-8 | convert it, for example with `iconv -f latin1 -t utf8`");
  write_file_atomic(file, std::string_view("good\n\x1F\x8B\n"));  // not at the beginning
  EXPECT_EQ(refusal([&] { (void)read_lines(file); }),
            file + ":2: not valid UTF-8 | convert it, for example with `iconv -f latin1 -t utf8`");
}

TEST(Printable, LeavesTextAndShowsControlCharacters) {
  EXPECT_EQ(printable("runs/größe µP 🙂"), "runs/größe µP 🙂");
  EXPECT_EQ(printable("a\nb\x1b[31m\t\x7f\r"), "a\\nb\\x1b[31m\\x09\\x7f\\x0d");
  EXPECT_EQ(printable("\xC2\x9B"
                      "1m"),
            "\\xc2\\x9b1m");  // another form of ESC [
  EXPECT_EQ(printable("\xF6\xE2\x82"), "\\xf6\\xe2\\x82");
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable("a\n\tb\r\n\x1b", "\n\t"), "a\n\tb\\x0d\n\\x1b");
  // Whatever the bytes: valid UTF-8 without control characters, and the same when shown again.
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second)};
      const std::string shown = printable(text);
      EXPECT_TRUE(is_valid_utf8(shown));
      for (const char c : shown) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
      EXPECT_EQ(printable(shown), shown);
    }
  }
}

}  // namespace
}  // namespace plumb
