#include "plumb/metrics/bleu_tokenizer.h"

#include <unicode/uchar.h>

#include "plumb/metrics/unicode.h"

namespace plumb {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_not_digit(char c) { return !is_digit(c); }
bool is_period_or_comma(char c) { return c == '.' || c == ','; }
bool is_dash(char c) { return c == '-'; }

// ASCII punctuation and the space, without the apostrophe and the . , - that have rules of their own.
bool is_separator(char c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
         (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

bool has_category(char32_t c, uint32_t mask) { return (U_GET_GC_MASK(static_cast<UChar32>(c)) & mask) != 0; }
bool is_punctuation(char32_t c) { return has_category(c, U_GC_P_MASK); }
bool is_symbol(char32_t c) { return has_category(c, U_GC_S_MASK); }
bool is_not_number(char32_t c) { return !has_category(c, U_GC_N_MASK); }

// s/(X)/ $1 /g
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

// The side of a pair (X)(Y) that becomes a word of its own.
enum class Detach { first, second };

// s/(X)(Y)/ $1 $2/g or s/(X)(Y)/$1 $2 /g. As with any global substitution, what one match took is not looked at by the
// next: that is visible in "..", and part of the definition.
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

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t i = text.find(from); i != std::string::npos; i = text.find(from, i + to.size()))
    text.replace(i, from.size(), to);
}

std::vector<std::string> words_of(std::string_view text) {
  const std::vector<std::string_view> words = split_words(text);
  return {words.begin(), words.end()};
}

std::string_view without_trailing_space(std::string_view line) {
  const std::vector<std::string_view> words = split_words(line);
  return words.empty() ? std::string_view()
                       : line.substr(0, static_cast<size_t>(words.back().data() + words.back().size() - line.data()));
}

// All rules concern ASCII, so they work on bytes: no byte of a longer UTF-8 sequence is ASCII.
std::vector<std::string> tokenize_13a(std::string_view line) {
  std::string text(without_trailing_space(line));
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  // In this order: "&amp;lt;" becomes "<".
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
  text = space_around(" " + text + " ", is_separator);
  text = space_pairs(text, is_not_digit, is_period_or_comma, Detach::second);
  text = space_pairs(text, is_period_or_comma, is_not_digit, Detach::first);
  text = space_pairs(text, is_digit, is_dash, Detach::second);
  return words_of(text);
}

// Unlike 13a the line is not padded, so a full stop after a number at the end of the line stays with the number.
std::vector<std::string> tokenize_international(std::string_view line) {
  std::u32string text = to_utf32(without_trailing_space(line));
  text = space_pairs(text, is_not_number, is_punctuation, Detach::second);
  text = space_pairs(text, is_punctuation, is_not_number, Detach::first);
  text = space_around(text, is_symbol);
  return words_of(to_utf8(text));
}

std::vector<std::string> tokenize_characters(std::string_view line) {
  std::vector<std::string> characters;
  for (const char32_t c : to_utf32(line)) {
    if (!is_space(c)) append_utf8(characters.emplace_back(), c);
  }
  return characters;
}

Registry<BleuTokenizer> make_tokenizers() {
  Registry<BleuTokenizer> registry("BLEU tokenizer");
  registry.add("13a", "separates ASCII punctuation, except . and , within numbers", "NIST mteval-v13a.pl",
               tokenize_13a);
  registry.add("intl", "separates punctuation and symbols of all scripts", "NIST mteval-v14.pl",
               tokenize_international);
  registry.add("char", "each character is a word", "", tokenize_characters);
  registry.add("none", "splits at white space", "", words_of);
  return registry;
}

}  // namespace

const Registry<BleuTokenizer>& bleu_tokenizers() {
  static const Registry<BleuTokenizer> registry = make_tokenizers();
  return registry;
}

}  // namespace plumb
