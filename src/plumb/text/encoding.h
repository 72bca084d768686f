// Tokenized text as the input of a model.
#pragma once

#include <cstdint>
#include <vector>

namespace plumb {

/// Token ids with special tokens, and the segment of each token: 0 or 1 for pairs of texts.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> segments;
  bool operator==(const Encoding&) const = default;
};

}  // namespace plumb
