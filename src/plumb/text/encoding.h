// A tokenized text as a model reads it.
#pragma once

#include <cstdint>
#include <vector>

namespace plumb {

/// Token ids with special tokens, and for each the segment that it belongs to: 0 or 1 for pairs of texts.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> segments;
  bool operator==(const Encoding&) const = default;
};

}  // namespace plumb
