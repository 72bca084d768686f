// Small text utilities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plumb {

/// The candidate that `word` may have meant: what other tools' name for it is called here (base/glossary.h), or the one
/// with the smallest edit distance, whatever the case, or one that it begins; empty if none is close enough. Names of
/// more than 200 bytes, and candidates after the first 10,000, are not compared.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "did you mean 'X'?" of the nearest candidate; without one, `otherwise`.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates, std::string otherwise = "");

/// "a, b, c".
std::string join(const std::vector<std::string>& words, std::string_view separator = ", ");

/// Replaces every occurrence of `from`, which is not empty; s/FROM/TO/g without regular expressions.
void replace_all(std::string& text, std::string_view from, std::string_view to);

/// Pieces between separators; empty pieces are kept.
std::vector<std::string> split(std::string_view text, char separator);

/// Text in lines of at most `width` characters, each of which begins with `begin` and ends with a line end.
std::string wrapped(std::string_view text, size_t width, const std::string& begin = "");

/// A table of printable() cells, two spaces between its columns: the first `left` are aligned left, the others right.
/// Rows may be short.
std::string aligned(std::vector<std::vector<std::string>> rows, size_t left);

/// 1234567 → "1,234,567".
std::string with_thousands(int64_t value);

/// Seconds as "4 s", "3:07 min", "2:05 h".
std::string duration(double seconds);

}  // namespace plumb
