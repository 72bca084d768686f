// Where special tokens stand around one text or a pair of texts, and to which segment each token belongs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plumb/text/encoding.h"

namespace plumb::tokenization {

/// A sequence of special tokens and texts.
struct Template {
  struct Item {
    int text = -1;                  // 0 the first text, 1 the second; -1: the special tokens
    std::vector<int32_t> tokens{};  // special tokens
    int32_t segment = 0;
  };
  std::vector<Item> items;

  /// Puts the ids of one or two texts in their places.
  [[nodiscard]] Encoding fill(std::span<const std::vector<int32_t>> texts) const;

  /// The number of times a special token occurs between the first text and the second.
  [[nodiscard]] int32_t count_between_texts(int32_t token) const;
};

/// For one text, and for two. By default no special tokens; the second text is segment 1.
struct Templates {
  Template single = {{{.text = 0}}};
  Template pair = {{{.text = 0}, {.text = 1, .segment = 1}}};
};

}  // namespace plumb::tokenization
