// Limits the growth of a text: each component in a sequence may multiply its length, so a few could exhaust memory.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/text/pipeline/components.h"

namespace plumb::tokenization {

inline size_t bytes_in(const std::string& token) { return token.size(); }
inline size_t bytes_in(const Piece& piece) { return piece.text.size(); }
template <typename Part>
size_t bytes_in(const std::vector<Part>& parts) {
  size_t bytes = 0;
  for (const Part& part : parts) bytes += bytes_in(part);
  return bytes;
}

/// Throws Error if a text becomes longer than 16 KiB and than 16 times what it was, or than 32 MiB. (The longest
/// decomposition of Unicode has 11 times the bytes of its character.)
inline void check_growth(size_t before, size_t after) {
  constexpr size_t kShort = size_t{1} << 14, kFactor = 16, kLongest = size_t{1} << 25;
  const size_t most = std::max(before, std::min(kLongest, std::max(kShort, kFactor * before)));
  if (after > most) throw Error(fmt::format("the tokenizer expands a text of {} bytes beyond {} bytes", before, most));
}

/// Applies components in order. Throws Error if they expand the text too much.
template <typename Component, typename Text>
void apply_all(const std::vector<Component>& components, Text& text) {
  const size_t before = bytes_in(text);
  for (const Component& each : components) {
    each(text);
    check_growth(before, bytes_in(text));
  }
}

}  // namespace plumb::tokenization
