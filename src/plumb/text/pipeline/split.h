// Cuts pieces at matches.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/base/utf8.h"
#include "plumb/text/oniguruma/regex.h"
#include "plumb/text/pipeline/components.h"

namespace plumb::tokenization {

/// What becomes of a match: dropped; a separate piece; the end of the previous piece; the beginning of the next piece;
/// a piece with adjacent matches.
enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// The behavior named "Removed", …; throws Error on an unknown name.
Behavior behavior_named(const std::string& name);

/// Appends the matches in a text to `matches`, initially empty, from left to right and without overlap.
using Find = std::function<void(std::string_view text, std::vector<Span>& matches)>;

/// Cuts every piece without a token. `inverted`: the parts between the matches are treated as the matches.
void split_pieces(std::vector<Piece>& pieces, const Find& find, Behavior behavior, bool inverted = false);

/// Finds all characters with a property, each as a separate match.
template <typename Property>
Find each_character(Property property) {
  return [property](std::string_view text, std::vector<Span>& matches) {
    for (size_t i = 0; i < text.size();) {
      const size_t begin = i;
      if (property(next_character(text, i))) matches.push_back({begin, i});
    }
  };
}

/// Replaces every piece without a token by the parts of its text that `cut` returns; empty parts are dropped.
void cut_pieces(std::vector<Piece>& pieces, const std::function<void(std::string_view, std::vector<Span>& parts)>& cut);

}  // namespace plumb::tokenization
