#include "plumb/base/utf8.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace plumb {
namespace {

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

TEST(Utf8, EveryCharacterIsReadAsItWasAppended) {
  for (char32_t character = 0; character <= 0x10FFFF; ++character) {
    if (character == 0xD800) character = 0xE000;  // no surrogates
    std::string text;
    append_character(text, character);
    size_t position = 0;
    ASSERT_EQ(decoded_character(text, position), character);
    ASSERT_EQ(position, text.size());
    ASSERT_EQ(characters_in(text), 1U);
  }
}

TEST(Utf8, EachLongestBeginningOfACharacterIsReplacedOnce) {
  // The examples of the Unicode standard, tables 3-8 to 3-11.
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA"},
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA"},
      {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA\uFFFD\uFFFDB"},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", "\uFFFD\uFFFD\uFFFD\uFFFDA"}};
  for (const auto& [text, repaired] : texts) EXPECT_EQ(repaired_utf8(text), repaired);
}

TEST(Utf8, CharactersBeginWhereNoByteContinuesOne) {
  const std::string text = "aß€";
  const std::vector<size_t> begins = {0, 1, 1, 3, 3, 3, 6}, next = {0, 1, 3, 3, 6, 6, 6};
  for (size_t i = 0; i <= text.size(); ++i) {
    EXPECT_EQ(beginning_of_character(text, i), begins[i]);
    EXPECT_EQ(next_beginning(text, i), next[i]);
  }
  EXPECT_EQ(characters_in(text), 3U);
}

TEST(Utf8, AByteOrderMarkIsLeftOut) {
  EXPECT_EQ(without_byte_order_mark("\xEF\xBB\xBFtext"), "text");
  EXPECT_EQ(without_byte_order_mark("\xEF\xBBtext"), "\xEF\xBBtext");
}

}  // namespace
}  // namespace plumb
