#include "plumb/base/ragged.h"

#include <gtest/gtest.h>

namespace plumb {
namespace {

using Runs = std::vector<RowRun>;

TEST(Ragged, OfAWholeBatchHasNoRuns) {
  Ragged layout({3, 0, 5});
  EXPECT_EQ(layout.runs(), Runs{});
  layout.set_origins({0, 3, 3});
  EXPECT_EQ(layout.runs(), Runs{});
}

TEST(Ragged, SequencesThatFollowEachOtherInTheWholeAreOneRun) {
  Ragged layout({3, 2, 5, 1});
  layout.set_origins({10, 13, 20, 25});
  EXPECT_EQ(layout.runs(), (Runs{{0, 10}, {5, 20}}));
  layout.set_origins({7, 10, 12, 17});
  EXPECT_EQ(layout.runs(), (Runs{{0, 7}}));
  layout.set_origins({0, 4, 6, 1});  // only the first has the same position in the whole
  EXPECT_EQ(layout.runs(), (Runs{{0, 0}, {3, 4}, {10, 1}}));
}

}  // namespace
}  // namespace plumb
