#include "plumb/data/stream_cut.h"

#include <gtest/gtest.h>

#include "plumb/base/error.h"
#include "plumb/data/batch_plan.h"

namespace plumb {
namespace {

using Segments = std::vector<std::vector<int64_t>>;

TEST(StreamCut, EveryColumnIsReadOnceInOrder) {
  EXPECT_EQ(cut_stream(7, {3}), (Segments{{0, 1, 2}, {3, 4, 5}, {6}}));
  EXPECT_EQ(cut_stream(6, {3}), (Segments{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(cut_stream(2, {3}), (Segments{{0, 1}}));
  EXPECT_EQ(cut_stream(0, {3}), Segments());
  EXPECT_THROW(cut_stream(7, {0}), Error);
}

// Columns have no order of length, no limit of tokens, and no windows.
TEST(StreamCut, APlanOfAStreamIsItsSegments) {
  const std::vector<ExampleCost> costs(25, {0, 80});
  for (const int64_t epoch : {0, 1}) {
    const BatchPlan plan(costs, {.tokens = 10, .seed = 3, .largest = 4, .window = 2, .stream = StreamCut{10}}, epoch);
    EXPECT_EQ(plan.windows(), 1);
    EXPECT_EQ(plan.size(), 3);
    EXPECT_EQ(plan.batches(0, 3), cut_stream(25, {10}));
    EXPECT_EQ(plan.batches(2, 3), (Segments{{20, 21, 22, 23, 24}}));
  }
}

}  // namespace
}  // namespace plumb
