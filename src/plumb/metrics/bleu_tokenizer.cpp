#include "plumb/metrics/bleu_tokenizer.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <array>
#include <utility>

#include "plumb/base/text.h"
#include "plumb/base/utf8.h"
#include "plumb/metrics/unicode.h"

namespace plumb {
namespace {

/// s/(X)/ $1 /g
template <typename String, typename Predicate>
String space_around(const String& text, Predicate is_x) {
  String spaced;
  spaced.reserve(2 * text.size());
  for (const auto c : text) {
    if (is_x(c)) {
      spaced += ' ';
      spaced += c;
      spaced += ' ';
    } else {
      spaced += c;
    }
  }
  return spaced;
}

/// The side of a pair (X)(Y) that becomes a separate word.
enum class Detach { first, second };

/// s/(X)(Y)/ $1 $2/g or s/(X)(Y)/$1 $2 /g. As in any global substitution, matches do not overlap; this affects "..",
/// and is part of the definition.
template <typename String, typename IsX, typename IsY>
String space_pairs(const String& text, IsX is_x, IsY is_y, Detach detach) {
  String spaced;
  spaced.reserve(2 * text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !is_x(text[i]) || !is_y(text[i + 1])) {
      spaced += text[i];
      continue;
    }
    if (detach == Detach::first) spaced += ' ';
    spaced += text[i];
    spaced += ' ';
    spaced += text[++i];
    if (detach == Detach::second) spaced += ' ';
  }
  return spaced;
}

// The rules of NIST's mteval-v13a.pl for Western languages. All concern ASCII, so they operate on bytes: no byte of a
// longer UTF-8 sequence is ASCII.

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_not_digit(char c) { return !is_digit(c); }
bool is_period_or_comma(char c) { return c == '.' || c == ','; }
bool is_dash(char c) { return c == '-'; }

// ASCII punctuation and the space, except the apostrophe and . , - which have their own rules.
bool is_separator(char c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
         (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

// In this order: "&amp;lt;" becomes "<".
void replace_entities(std::string& text) {
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
}

// Puts spaces around ASCII punctuation except ' , - and .
std::string separate_marks(const std::string& text) { return space_around(text, is_separator); }

// Puts spaces around periods and commas unless there are digits on both sides, and around a dash after a digit.
std::string separate_periods_commas_and_dashes(std::string text) {
  text = space_pairs(text, is_not_digit, is_period_or_comma, Detach::second);
  text = space_pairs(text, is_period_or_comma, is_not_digit, Detach::first);
  return space_pairs(text, is_digit, is_dash, Detach::second);
}

bool has_category(char32_t c, uint32_t mask) { return (U_GET_GC_MASK(static_cast<UChar32>(c)) & mask) != 0; }
bool is_punctuation(char32_t c) { return has_category(c, U_GC_P_MASK); }
bool is_symbol(char32_t c) { return has_category(c, U_GC_S_MASK); }
bool is_not_number(char32_t c) { return !has_category(c, U_GC_N_MASK); }

std::vector<std::string> owned_words(std::string_view text) {
  const std::vector<std::string_view> words = split_words(text);
  return {words.begin(), words.end()};
}

std::vector<std::string> tokenize_13a(std::string_view line) {
  std::string text(without_trailing_space(line));
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  replace_entities(text);
  return owned_words(separate_periods_commas_and_dashes(separate_marks(" " + text + " ")));
}

// Unlike in 13a, the line is not padded, so a period after a number at the end of the line stays with the number.
std::vector<std::string> tokenize_international(std::string_view line) {
  std::u32string text = to_utf32(without_trailing_space(line));
  text = space_pairs(text, is_not_number, is_punctuation, Detach::second);
  text = space_pairs(text, is_punctuation, is_not_number, Detach::first);
  text = space_around(text, is_symbol);
  return owned_words(to_utf8(text));
}

// The ranges that sacreBLEU uses, rather than Unicode's property. They are those of Shujian Huang's script except
// beyond U+FFFF: Python reads that notation as U+2001 to U+2A6D (general punctuation, arrows, mathematical signs), and
// ideographs beyond U+FFFF stay together.
bool is_chinese(char32_t c) {
  constexpr std::array<std::pair<char32_t, char32_t>, 14> kRanges = {{{0x2001, 0x2A6D},
                                                                      {0x2E80, 0x2FDF},
                                                                      {0x2FF0, 0x303F},
                                                                      {0x3100, 0x312F},
                                                                      {0x31A0, 0x31EF},
                                                                      {0x3200, 0x33FF},
                                                                      {0x3400, 0x4DB5},
                                                                      {0x4E00, 0x9FBB},
                                                                      {0xF900, 0xFA2D},
                                                                      {0xFA30, 0xFA6A},
                                                                      {0xFA70, 0xFAD9},
                                                                      {0xFE10, 0xFE1F},
                                                                      {0xFE30, 0xFE4F},
                                                                      {0xFF00, 0xFFEF}}};
  return std::any_of(kRanges.begin(), kRanges.end(),
                     [c](const auto& range) { return range.first <= c && c <= range.second; });
}

// Not padded either.
std::vector<std::string> tokenize_chinese(std::string_view line) {
  const std::u32string text = space_around(to_utf32(without_outer_space(line)), is_chinese);
  return owned_words(separate_periods_commas_and_dashes(separate_marks(to_utf8(text))));
}

std::vector<std::string> tokenize_characters(std::string_view line) {
  std::vector<std::string> characters;
  for (const char32_t c : to_utf32(line)) {
    if (!is_space(c)) append_character(characters.emplace_back(), c);
  }
  return characters;
}

Registry<BleuTokenizer> make_tokenizers() {
  Registry<BleuTokenizer> registry("BLEU tokenizer", {"BLEU tokenizers", "plumb score --tokenize"});
  registry.add("13a", "separates ASCII punctuation, except . and , within numbers", "NIST mteval-v13a.pl",
               tokenize_13a);
  registry.add("intl", "separates punctuation and symbols of all scripts", "NIST mteval-v14.pl",
               tokenize_international);
  registry.add("zh", "separates Chinese characters, then ASCII punctuation as 13a does",
               "Post 2018, arXiv 1804.08771 (sacreBLEU)", tokenize_chinese);
  registry.add("char", "each character is a word", "", tokenize_characters);
  registry.add("none", "splits at white space", "", owned_words);
  return registry;
}

}  // namespace

const Registry<BleuTokenizer>& bleu_tokenizers() {
  static const Registry<BleuTokenizer> registry = make_tokenizers();
  return registry;
}

}  // namespace plumb
