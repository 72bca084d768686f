#include "plumb/metrics/unicode.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include "plumb/base/utf8.h"

namespace plumb {
std::u32string to_utf32(std::string_view text) {
  std::u32string code_points;
  code_points.reserve(text.size());
  for (size_t i = 0; i < text.size();) code_points += next_character(text, i);
  return code_points;
}

std::string to_utf8(std::u32string_view text) {
  std::string utf8;
  utf8.reserve(text.size());
  for (const char32_t c : text) append_character(utf8, c);
  return utf8;
}

std::string to_lower(std::string_view text) {
  std::string lower;
  icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int32_t>(text.size())))
      .toLower(icu::Locale::getRoot())
      .toUTF8String(lower);
  return lower;
}

bool is_space(char32_t code_point) {
  if (code_point < 0x80)
    return code_point == ' ' || (code_point >= 0x09 && code_point <= 0x0D) ||
           (code_point >= 0x1C && code_point <= 0x1F);
  return u_isUWhiteSpace(static_cast<UChar32>(code_point)) != 0;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  size_t word_begin = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    if (!is_space(next_character(text, i))) continue;
    if (begin > word_begin) words.push_back(text.substr(word_begin, begin - word_begin));
    word_begin = i;
  }
  if (text.size() > word_begin) words.push_back(text.substr(word_begin));
  return words;
}

std::string_view without_trailing_space(std::string_view text) {
  const std::vector<std::string_view> words = split_words(text);
  if (words.empty()) return {};
  return text.substr(0, static_cast<size_t>(words.back().data() + words.back().size() - text.data()));
}

std::string_view without_outer_space(std::string_view text) {
  const std::vector<std::string_view> words = split_words(text);
  if (words.empty()) return {};
  return without_trailing_space(text.substr(static_cast<size_t>(words.front().data() - text.data())));
}

}  // namespace plumb
