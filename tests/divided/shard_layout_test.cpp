#include "plumb/divided/shard_layout.h"

#include <gtest/gtest.h>

namespace plumb {
namespace {

// Every element of every tensor is kept by one rank, and by no other, at a place of its own in that rank's piece.
TEST(ShardLayout, KeepsEveryElementOnce) {
  const std::vector<int64_t> sizes = {7, 0, 5, 12, 1};
  const std::vector<std::vector<size_t>> units = {{0, 4}, {1, 2, 3}};
  for (const int64_t ranks : {1, 2, 3, 4, 30}) {
    const ShardLayout layout(sizes, units, ranks);
    ASSERT_EQ(layout.units().size(), 2);
    EXPECT_EQ(layout.units()[0].count, 8);
    EXPECT_EQ(layout.units()[1].piece, (17 + ranks - 1) / ranks);
    for (size_t tensor = 0; tensor < sizes.size(); ++tensor) {
      int64_t next = 0;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const ShardLayout::Kept kept = layout.kept(tensor, rank);
        if (kept.count == 0) continue;
        EXPECT_EQ(kept.begin, next) << ranks << ", tensor " << tensor;
        const int64_t piece = layout.units()[layout.unit_of(tensor)].piece;
        EXPECT_EQ(layout.begin(tensor) + kept.begin, rank * piece + kept.in_piece);
        EXPECT_LE(kept.in_piece + kept.count, piece);
        next += kept.count;
      }
      EXPECT_EQ(next, sizes[tensor]) << ranks << ", tensor " << tensor;
    }
  }
}

}  // namespace
}  // namespace plumb
