// Batches of pairs with the special tokens of Plumb's own tokenizers.
#pragma once

#include <cstdint>
#include <span>

#include "plumb/data/sequences.h"

namespace plumb {

inline constexpr int32_t kPad = 0, kBos = 1, kEos = 2, kUnknown = 3;

inline void append(Batch& batch, std::span<const int32_t> source, std::span<const int32_t> target, int64_t example) {
  append_pair(batch, source, {}, target, {}, example);
}

}  // namespace plumb
