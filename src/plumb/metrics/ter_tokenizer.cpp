#include "plumb/metrics/ter_tokenizer.h"

#include <utility>

#include "plumb/base/text.h"
#include "plumb/metrics/mteval_rules.h"
#include "plumb/metrics/substitution.h"
#include "plumb/metrics/unicode.h"

namespace plumb {
namespace {

// Chinese, Japanese and full-width punctuation.
bool is_asian_punctuation(char32_t c) {
  return c == 0x3001 || c == 0x3002 || (c >= 0x3008 && c <= 0x3011) || (c >= 0x3014 && c <= 0x301F) ||
         (c >= 0xFF61 && c <= 0xFF65) || c == 0x30FB ||  //
         c == 0xFF0E || c == 0xFF0C || c == 0xFF1F || c == 0xFF1A || c == 0xFF1B || c == 0xFF01 || c == 0xFF02 ||
         c == 0xFF08 || c == 0xFF09;
}

// Characters that form words by themselves. Kana stay together.
bool is_asian_word(char32_t c) {
  return (c >= 0x2E80 && c <= 0x2EFF) ||  // CJK Radicals Supplement
         (c >= 0x31C0 && c <= 0x31EF) ||  // CJK Strokes
         (c >= 0x3200 && c <= 0x4DBF) ||  // enclosed and compatibility forms, Unified Ideographs Extension A
         (c >= 0x4E00 && c <= 0x9FFF) ||  // CJK Unified Ideographs
         (c >= 0xF900 && c <= 0xFAFF) ||  // CJK Compatibility Ideographs
         (c >= 0xFE30 && c <= 0xFE4F) ||  // CJK Compatibility Forms
         is_asian_punctuation(c);
}

std::string normalized(std::string text) {
  replace_all(text, "\n-", "");
  replace_all(text, "\n", " ");
  replace_entities(text);
  text = separate_marks(" " + text + " ");
  replace_all(text, "'s ", " 's ");
  return separate_periods_commas_and_dashes(std::move(text));
}

bool is_removed(char c) { return std::string_view(".,?:;!\"()").find(c) != std::string_view::npos; }

}  // namespace

std::vector<std::string> tokenize_for_ter(std::string_view line, const TerOptions& options) {
  std::string text = options.case_sensitive ? std::string(line) : to_lower(line);
  if (options.normalize) {
    text = normalized(std::move(text));
    if (options.asian) text = to_utf8(space_around(to_utf32(text), is_asian_word));
  }
  if (options.remove_punctuation) {
    std::erase_if(text, is_removed);
    if (options.asian) {
      std::u32string characters = to_utf32(text);
      std::erase_if(characters, is_asian_punctuation);
      text = to_utf8(characters);
    }
  }
  const std::vector<std::string_view> words = split_words(text);
  return {words.begin(), words.end()};
}

}  // namespace plumb
