#include "plumb/data/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "plumb/task/datasets.h"
#include "support/paths.h"

namespace plumb {
namespace {

using Plan = std::vector<std::vector<int64_t>>;
using Sequences = std::vector<std::vector<int32_t>>;

// 1,000 pairs of 1 to 30 tokens per side.
class Batches : public testing::Test {
 protected:
  Batches() : split_(make(directory_ / "split")), pairs_(split_, {}, {}), costs_(pairs_.costs()) {}

  static Split make(const std::filesystem::path& path) {
    Random random(3, "test");
    Sequences sources, targets;
    for (int i = 0; i < 1000; ++i) {
      sources.emplace_back(1 + random.below(30), 5);
      targets.emplace_back(1 + random.below(30), 6);
    }
    write_split(path, sources, targets);
    return Split::open(path);
  }

  [[nodiscard]] int64_t length(int64_t i) const {
    return std::ssize(split_.source(i)) > std::ssize(split_.target(i)) ? std::ssize(split_.source(i))
                                                                       : std::ssize(split_.target(i));
  }

  void expect_complete_and_bounded(const Plan& plan, int64_t tokens) const {
    std::vector<int64_t> seen;
    for (const auto& batch : plan) {
      ASSERT_FALSE(batch.empty());
      const Batch made = pairs_.batch(batch);
      EXPECT_LE(std::ssize(made.source), tokens);
      EXPECT_LE(std::ssize(made.target_input), tokens);
      seen.insert(seen.end(), batch.begin(), batch.end());
    }
    std::sort(seen.begin(), seen.end());
    std::vector<int64_t> all(1000);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(seen, all);
  }

  test::TemporaryDirectory directory_;
  Split split_;
  PairDataset pairs_;
  std::vector<ExampleCost> costs_;
};

TEST_F(Batches, EveryPairOnceWithinTheBound) {
  for (const int64_t tokens : {31, 100, 512, 100000}) {
    expect_complete_and_bounded(plan_batches(costs_, tokens, 1, 0), tokens);
    expect_complete_and_bounded(plan_evaluation_batches(costs_, tokens), tokens);
  }
  EXPECT_EQ(plan_batches(costs_, 100000, 1, 0).size(), 1U);
}

TEST_F(Batches, BatchesAreFull) {
  // No batch has room for the first example of the next one.
  const Plan plan = plan_evaluation_batches(costs_, 200);
  for (size_t b = 0; b + 1 < plan.size(); ++b) {
    std::vector<int64_t> more = plan[b];
    more.push_back(plan[b + 1].front());
    const Batch batch = pairs_.batch(more);
    EXPECT_GT(std::max(batch.source.size(), batch.target_input.size()), 200U);
  }
}

TEST_F(Batches, AFunctionOfSeedAndEpoch) {
  EXPECT_EQ(plan_batches(costs_, 200, 1, 0), plan_batches(costs_, 200, 1, 0));
  EXPECT_NE(plan_batches(costs_, 200, 1, 0), plan_batches(costs_, 200, 1, 1));
  EXPECT_NE(plan_batches(costs_, 200, 1, 0), plan_batches(costs_, 200, 2, 0));
  EXPECT_EQ(plan_evaluation_batches(costs_, 200), plan_evaluation_batches(costs_, 200));
}

TEST_F(Batches, CompositionDiffersByEpochToo) {
  const auto sorted = [](Plan plan) {
    for (auto& batch : plan) std::sort(batch.begin(), batch.end());
    std::sort(plan.begin(), plan.end());
    return plan;
  };
  EXPECT_NE(sorted(plan_batches(costs_, 200, 1, 0)), sorted(plan_batches(costs_, 200, 1, 1)));
}

TEST_F(Batches, SimilarLengthsTogetherAndBatchesInRandomOrder) {
  const Plan plan = plan_batches(costs_, 200, 1, 0);
  int descents = 0;
  int64_t last = 0;
  for (const auto& batch : plan) {
    int64_t shortest = 1000;
    int64_t longest = 0;
    for (const int64_t i : batch) {
      shortest = std::min(shortest, length(i));
      longest = std::max(longest, length(i));
    }
    // About 2l/900 of the 1,000 pairs have length l, so a batch of short ones spans a few lengths.
    EXPECT_LE(longest - shortest, 6);
    descents += shortest < last ? 1 : 0;
    last = shortest;
  }
  EXPECT_GT(descents, static_cast<int>(plan.size()) / 4);
}

TEST_F(Batches, EvaluationGoesFromShortToLong) {
  int64_t last = 0;
  for (const auto& batch : plan_evaluation_batches(costs_, 200)) {
    for (const int64_t i : batch) {
      EXPECT_GE(length(i), last);
      last = length(i);
    }
  }
}

TEST_F(Batches, APairLargerThanABatch) {
  EXPECT_THROW(plan_batches(costs_, 30, 1, 0), Error);  // 30 tokens and a special
  const Plan plan = plan_evaluation_batches(costs_, 30);
  EXPECT_EQ(plan.back().size(), 1U);
  EXPECT_EQ(length(plan.back().front()), 30);
  EXPECT_THROW(plan_batches(costs_, 0, 1, 0), Error);
}

// A resumed run continues with the batches of the version that started it.
TEST_F(Batches, PlansAreThoseOfEarlierVersions) {
  const auto hash = [](const Plan& plan) {
    uint64_t sum = stream_of("");
    for (const auto& batch : plan) {
      sum = sum * 31 + batch.size();
      for (const int64_t i : batch) sum = sum * 31 + static_cast<uint64_t>(i);
    }
    return sum;
  };
  EXPECT_EQ(hash(plan_batches(costs_, 200, 1, 0)), 15530150360445142015U);
  EXPECT_EQ(hash(plan_batches(costs_, 200, 7, 3)), 10215528719843193951U);
  EXPECT_EQ(hash(plan_evaluation_batches(costs_, 200)), 3567457800313956667U);
  // Of text, whose empty source counts as no token; earlier versions counted one.
  std::vector<ExampleCost> text = TextDataset(split_.as_running_text(), {}).costs();
  const Plan plan = plan_batches(text, 200, 1, 0);
  for (ExampleCost& cost : text) cost.source = 1;
  EXPECT_EQ(plan, plan_batches(text, 200, 1, 0));
}

TEST_F(Batches, CostsCountTheSpecialsThatABatchAdds) {
  const Batch pair = pairs_.batch(std::vector<int64_t>{17});
  EXPECT_EQ(costs_[17].source, std::ssize(pair.source));
  EXPECT_EQ(costs_[17].target, std::ssize(pair.target_input));
  const TextDataset text(split_.as_running_text(), {});
  EXPECT_EQ(text.cost(17).target, std::ssize(text.batch(std::vector<int64_t>{17}).target_input));
}

TEST(BatchPlans, NeedNoSplit) {
  const std::vector<ExampleCost> costs = {{4, 0}, {2, 0}, {9, 0}, {3, 0}};
  EXPECT_EQ(plan_evaluation_batches(costs, 8), (Plan{{1, 3}, {0}, {2}}));
  EXPECT_THROW(plan_batches(costs, 8, 1, 0), Error);
  EXPECT_TRUE(plan_batches({}, 8, 1, 0).empty());
}

TEST_F(Batches, ABatchKeepsTheOrderGiven) {
  const std::vector<int64_t> examples = {17, 3};
  const Batch batch = pairs_.batch(examples);
  EXPECT_EQ(batch.examples, examples);
  EXPECT_EQ(batch.source_layout.length(0), std::ssize(split_.source(17)) + 1);
  EXPECT_EQ(batch.target_layout.length(1), std::ssize(split_.target(3)) + 1);
  EXPECT_THROW((void)pairs_.batch(std::vector<int64_t>{1000}), Error);
}

}  // namespace
}  // namespace plumb
