#include "plumb/divided/shard_layout.h"

#include <algorithm>
#include <utility>

namespace plumb {

ShardLayout::ShardLayout(const std::vector<int64_t>& sizes, const std::vector<std::vector<size_t>>& units,
                         int64_t ranks)
    : ranks_(ranks), places_(sizes.size()) {
  for (const std::vector<size_t>& tensors : units) {
    Unit unit{tensors};
    for (const size_t tensor : tensors) {
      places_[tensor] = {units_.size(), unit.count, sizes[tensor]};
      unit.count += sizes[tensor];
    }
    unit.shard = (unit.count + ranks - 1) / ranks;
    units_.push_back(std::move(unit));
  }
}

ShardLayout::Range ShardLayout::range(size_t tensor, int64_t rank) const {
  const Place& place = places_[tensor];
  const int64_t shard = units_[place.unit].shard, first = rank * shard;
  const int64_t begin = std::max(first, place.begin), end = std::min(first + shard, place.begin + place.count);
  if (begin >= end) return {};
  return {begin - place.begin, end - begin, begin - first};
}

}  // namespace plumb
