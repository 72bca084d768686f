// Characters for tokenizers: normalization, and the properties as defined by the Rust crates that Hugging Face's
// `tokenizers` uses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumb::tokenization {

/// The only character of `text`; throws Error naming `what` if there is not exactly one.
char32_t single_character(std::string_view text, std::string_view what);

/// Unicode's White_Space.
bool is_white_space(char32_t c);
/// Decimal, letter and other numbers.
bool is_number(char32_t c);
/// `\w` in the crate `regex`: alphabetic, mark, decimal number, connector punctuation, join control.
bool is_word_character(char32_t c);

/// The characters that BERT splits at: ASCII punctuation and symbols, and the punctuation of Unicode 8.
bool is_bert_punctuation(char32_t c);
/// Control, format and private-use characters of Unicode 8, except tabs and line ends.
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
/// Normalization of Unicode 9: newer characters are unchanged. Throws Error if the text is too long.
std::string normalized(std::string_view text, NormalForm form);

/// Boundaries of extended grapheme clusters (UAX #29). `between` returns true if there is one between two adjacent
/// characters; it is called in the order of the text, but may be skipped if both are below U+0300.
class GraphemeBreaks {
 public:
  [[nodiscard]] bool between(char32_t before, char32_t next);

 private:
  int flags_ = 0;            // consecutive regional indicators so far
  bool pictograph_ = false;  // so far: an emoji followed only by extending characters
};

/// The byte offsets at which the grapheme clusters of `text` begin, followed by its size.
std::vector<size_t> grapheme_boundaries(std::string_view text);

/// A character's script in Unicode 9, as ICU's code: Han for Hiragana, Katakana and the prolonged sound mark;
/// kAnyScript for the space and for characters without a script.
int script_of(char32_t c);
constexpr int kAnyScript = -1;

}  // namespace plumb::tokenization
