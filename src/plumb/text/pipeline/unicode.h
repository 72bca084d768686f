// Characters in the pipeline of a tokenizer: UTF-8, properties as the Rust crates behind Hugging Face's `tokenizers`
// know them, and normalization.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::tokenization {

/// The character at `position`, which moves past it; U+FFFD for malformed bytes.
char32_t next_character(std::string_view text, size_t& position);
void append_character(std::string& text, char32_t character);
size_t character_count(std::string_view text);

/// `text` with malformed bytes replaced by U+FFFD, one for each maximal part of a character.
std::string repaired_utf8(std::string_view text);

/// The only character of `text`; throws Error that names `what` if there is not exactly one.
char32_t single_character(std::string_view text, std::string_view what);

/// Unicode's White_Space.
bool is_white_space(char32_t c);
/// Decimal, letter and other numbers.
bool is_number(char32_t c);
/// `\w` of the crate `regex`: alphabetic, mark, decimal number, connector punctuation, join control.
bool is_word_character(char32_t c);

/// ASCII punctuation and symbols, and the punctuation of Unicode 8: what BERT splits at.
bool is_bert_punctuation(char32_t c);
/// Control, format and private-use characters of Unicode 8, without tab and line ends.
bool is_bert_control(char32_t c);
/// CJK ideographs.
bool is_bert_ideograph(char32_t c);
/// Non-spacing marks of Unicode 8.
bool is_nonspacing_mark(char32_t c);
/// Any mark of Unicode 9.
bool is_combining_mark(char32_t c);

/// Each character's lowercase mapping, independent of its neighbors.
std::string to_lowercase(std::string_view text);

enum class NormalForm { composed, decomposed, compatibility_composed, compatibility_decomposed };  // NFC NFD NFKC NFKD
/// Normalization of Unicode 9: newer characters stay as they are.
std::string normalized(std::string_view text, NormalForm form);

/// True if an extended grapheme cluster (UAX #29) that contains `before` as its last character so far ends before
/// `next`.
class GraphemeBreaks {
 public:
  [[nodiscard]] bool between(char32_t before, char32_t next);

 private:
  int flags_ = 0;            // regional indicators before, modulo 2
  bool pictograph_ = false;  // an emoji followed by extending characters only
};

/// The byte offsets at which grapheme clusters of `text` begin, and its size.
std::vector<size_t> grapheme_boundaries(std::string_view text);

/// A character's script in Unicode 9, as a number: Han for Hiragana, Katakana and the prolonged sound mark; kAnyScript
/// for the space and for characters without script.
int script_of(char32_t c);
constexpr int kAnyScript = -1;

}  // namespace plumb::tokenization
