#include "plumb/divided/shard_layout.h"

#include <gtest/gtest.h>

namespace plumb {
namespace {

// Every element of every tensor is kept by one rank, and by no other, at a place of its own in that rank's shard.
TEST(ShardLayout, KeepsEveryElementOnce) {
  const std::vector<int64_t> sizes = {7, 0, 5, 12, 1};
  const std::vector<std::vector<size_t>> units = {{0, 4}, {1, 2, 3}};
  for (const int64_t ranks : {1, 2, 3, 4, 30}) {
    const ShardLayout layout(sizes, units, ranks);
    ASSERT_EQ(layout.units().size(), 2);
    EXPECT_EQ(layout.units()[0].count, 8);
    EXPECT_EQ(layout.units()[1].shard, (17 + ranks - 1) / ranks);
    for (size_t tensor = 0; tensor < sizes.size(); ++tensor) {
      int64_t next = 0;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const ShardLayout::Range range = layout.range(tensor, rank);
        if (range.count == 0) continue;
        EXPECT_EQ(range.begin, next) << ranks << ", tensor " << tensor;
        const int64_t shard = layout.units()[layout.unit_of(tensor)].shard;
        EXPECT_EQ(layout.begin(tensor) + range.begin, rank * shard + range.in_shard);
        EXPECT_LE(range.in_shard + range.count, shard);
        next += range.count;
      }
      EXPECT_EQ(next, sizes[tensor]) << ranks << ", tensor " << tensor;
    }
  }
}

}  // namespace
}  // namespace plumb
