// Limits the growth of a text: each component in a sequence may multiply its length, so a few could exhaust memory.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/text/pipeline/components.h"

namespace plumb::tokenization {

inline size_t bytes_in(const Piece& piece) { return piece.text.size(); }
inline size_t bytes_in(const std::vector<Piece>& pieces) {
  size_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.text.size();
  return bytes;
}
inline size_t bytes_in(const std::vector<std::string>& tokens) {
  size_t bytes = 0;
  for (const std::string& token : tokens) bytes += token.size();
  return bytes;
}

/// Throws Error if a component expands a text beyond 32 MiB.
inline void check_growth(size_t before, size_t after) {
  constexpr size_t kLongest = size_t{1} << 25;
  if (after > before && after > kLongest) throw Error("the tokenizer expands a text beyond 32 MiB");
}

/// Applies components in order. Throws Error if they expand the text too much.
template <typename Component, typename Text>
void apply_all(const std::vector<Component>& components, Text& text) {
  size_t before = bytes_in(text);
  for (const Component& each : components) {
    each(text);
    const size_t after = bytes_in(text);
    check_growth(before, after);
    before = after;
  }
}

}  // namespace plumb::tokenization
