// How a list of tensors is sharded among ranks, of which each keeps an equal part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plumb {

/// Units are tensors that are exchanged together: their elements, one tensor after another, are padded to a multiple of
/// the ranks and split into equal shards, the r-th of which belongs to rank r.
class ShardLayout {
 public:
  struct Unit {
    std::vector<size_t> tensors{};
    int64_t count = 0;  // elements, without padding
    int64_t shard = 0;  // elements of a rank, with padding
  };

  /// The elements [begin, begin + count) of a flattened tensor that a rank keeps, and where they are in its shard.
  struct Range {
    int64_t begin = 0, count = 0;
    int64_t in_shard = 0;
  };

  ShardLayout() = default;
  /// `sizes`: elements of each tensor; `units`: each tensor is in one of them.
  ShardLayout(const std::vector<int64_t>& sizes, const std::vector<std::vector<size_t>>& units, int64_t ranks);

  [[nodiscard]] int64_t ranks() const { return ranks_; }
  [[nodiscard]] const std::vector<Unit>& units() const { return units_; }
  [[nodiscard]] size_t unit_of(size_t tensor) const { return places_[tensor].unit; }
  /// Where a tensor begins among the elements of its unit.
  [[nodiscard]] int64_t begin(size_t tensor) const { return places_[tensor].begin; }
  [[nodiscard]] Range range(size_t tensor, int64_t rank) const;

 private:
  struct Place {
    size_t unit = 0;
    int64_t begin = 0, count = 0;
  };

  int64_t ranks_ = 1;
  std::vector<Unit> units_;
  std::vector<Place> places_;  // [tensor]
};

}  // namespace plumb
