// Text as code points, with the definitions of white space and lower case that the corpus metrics share. They are
// Python's, because the reference implementations are written in it and scores have to match.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumb {

/// The code points of UTF-8 text; a malformed sequence becomes U+FFFD.
std::u32string to_utf32(std::string_view text);

/// UTF-8 of code points.
std::string to_utf8(std::u32string_view text);

/// Full lower-casing independent of the locale (str.lower(): a final capital sigma becomes ς).
std::string to_lower(std::string_view text);

/// White space as defined by str.split(): the Unicode property White_Space and the separators U+001C to U+001F.
bool is_space(char32_t code_point);

/// The words between runs of white space; no word is empty. The views point into `text`.
std::vector<std::string_view> split_words(std::string_view text);

/// `text` without white space at its end, or at both ends (str.rstrip(), str.strip()).
std::string_view without_trailing_space(std::string_view text);
std::string_view without_outer_space(std::string_view text);

}  // namespace plumb
