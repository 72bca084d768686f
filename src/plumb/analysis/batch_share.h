// Division of batches among processes that measure together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plumb/base/batch.h"
#include "plumb/parallel/group.h"

namespace plumb {

/// This process's share of the batches: a contiguous block, in order of rank. Block sizes differ by at most one. With
/// fewer batches than processes, some have none; rank 0 has the first one.
inline std::span<const Batch> share_of_batches(const std::vector<Batch>& batches, const Group& group) {
  const int64_t count = std::ssize(batches), size = group.size();
  const auto begin_of = [&](int64_t rank) { return static_cast<size_t>((rank * count + size - 1) / size); };
  const size_t begin = begin_of(group.rank());
  return std::span(batches).subspan(begin, begin_of(group.rank() + 1) - begin);
}

}  // namespace plumb
