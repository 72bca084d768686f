// Cutting pieces at matches.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/text/oniguruma/regex.h"
#include "plumb/text/pipeline/components.h"
#include "plumb/text/pipeline/unicode.h"

namespace plumb::tokenization {

/// What becomes of a match: dropped; a piece of its own; the end of the piece before; the beginning of the piece after;
/// a piece with its neighboring matches.
enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// "Removed", …; throws Error on an unknown name.
Behavior behavior_named(const std::string& name);

/// Sends the matches in a text to `matches`, which is empty, from left to right and without overlap.
using Find = std::function<void(std::string_view text, std::vector<Span>& matches)>;

/// Cuts every piece without token. With `inverted`, what lies between the matches counts as the matches.
void split_pieces(std::vector<Piece>& pieces, const Find& find, Behavior behavior, bool inverted = false);

/// A Find of all characters with a property, each a match of its own.
template <typename Property>
Find each_character(Property property) {
  return [property](std::string_view text, std::vector<Span>& matches) {
    for (size_t i = 0; i < text.size();) {
      const size_t begin = i;
      if (property(next_character(text, i))) matches.push_back({begin, i});
    }
  };
}

/// Replaces every piece without token by what `cut` makes of it: parts of the piece's text.
void cut_pieces(std::vector<Piece>& pieces, const std::function<void(std::string_view, std::vector<Span>& parts)>& cut);

}  // namespace plumb::tokenization
