// Substitutions used by tokenization rules, on bytes or code points.
#pragma once

namespace plumb {

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

}  // namespace plumb
