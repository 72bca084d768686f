// The special tokens around one text or a pair of texts, and the segment of each token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plumb/text/encoding.h"

namespace plumb::tokenization {

/// A sequence of special tokens and texts.
struct Template {
  struct Item {
    int text = -1;                  // 0: the first text, 1: the second; -1: special tokens
    std::vector<int32_t> tokens{};  // the special tokens
    int32_t segment = 0;
  };
  std::vector<Item> items;

  /// Inserts the ids of one or two texts.
  [[nodiscard]] Encoding fill(std::span<const std::vector<int32_t>> texts) const;

  /// The number of occurrences of a special token between the first text and the second.
  [[nodiscard]] int32_t count_between_texts(int32_t token) const;
};

/// For one text and for two. The default has no special tokens; the second text is segment 1.
struct Templates {
  Template single = {{{.text = 0}}};
  Template pair = {{{.text = 0}, {.text = 1, .segment = 1}}};
};

}  // namespace plumb::tokenization
