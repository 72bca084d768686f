#include "plumb/data/batch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "support/errors.h"

namespace plumb {
namespace {

using Batches = BatchPlan::Batches;

class BatchPlanOf : public testing::Test {
 protected:
  BatchPlanOf() {
    Random random(1, "costs");
    for (int i = 0; i < 1003; ++i) {
      costs_.push_back({1 + static_cast<int64_t>(random.below(30)), 1 + static_cast<int64_t>(random.below(30))});
    }
  }
  static Batches all_of(const BatchPlan& plan) { return plan.batches(0, plan.size()); }

  /// The examples of all batches in ascending order. Expects that each batch has 100 tokens at most.
  std::vector<int64_t> examples_that_fit(const BatchPlan& plan) const {
    std::vector<int64_t> seen;
    for (const auto& batch : all_of(plan)) {
      ExampleCost sum;
      for (const int64_t i : batch) {
        sum.source += costs_[static_cast<size_t>(i)].source;
        sum.target += costs_[static_cast<size_t>(i)].target;
        seen.push_back(i);
      }
      EXPECT_LE(sum.larger(), 100);
    }
    std::sort(seen.begin(), seen.end());
    return seen;
  }

  std::vector<ExampleCost> costs_;
};

TEST_F(BatchPlanOf, UpToItsLimitIsThePlanOfTheWhole) {
  for (const int64_t epoch : {0, 1, 7}) {
    const BatchPlan plan(costs_, {.tokens = 100, .seed = 3, .largest = 1003, .window = 10}, epoch);
    EXPECT_EQ(plan.windows(), 1);
    EXPECT_EQ(all_of(plan), plan_batches(costs_, 100, 3, epoch));
  }
}

TEST_F(BatchPlanOf, WindowsHaveEveryExampleOnceInBatchesThatFit) {
  const BatchPlan plan(costs_, {.tokens = 100, .seed = 3, .largest = 1002, .window = 100}, 2);
  EXPECT_EQ(plan.windows(), 11);
  const std::vector<int64_t> seen = examples_that_fit(plan);
  ASSERT_EQ(seen.size(), costs_.size());
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], static_cast<int64_t>(i));
}

// A window's examples come from the whole corpus, and those of a batch have similar lengths.
TEST_F(BatchPlanOf, WindowsAreSamplesOfTheCorpus) {
  const BatchPlan plan(costs_, {.tokens = 100, .seed = 3, .largest = 0, .window = 250}, 0);
  for (int64_t w = 0; w < plan.windows(); ++w) {
    std::set<int64_t> quarters;
    for (const auto& batch : *plan.window(w)) {
      for (const int64_t i : batch) quarters.insert(i / 251);
    }
    EXPECT_EQ(quarters.size(), w + 1 < plan.windows() ? 4U : quarters.size());
  }
  int64_t spread = 0;
  const Batches batches = all_of(plan);
  for (const auto& batch : batches) {
    const auto [shortest, longest] = std::minmax_element(batch.begin(), batch.end(), [&](int64_t a, int64_t b) {
      return costs_[static_cast<size_t>(a)].larger() < costs_[static_cast<size_t>(b)].larger();
    });
    spread += costs_[static_cast<size_t>(*longest)].larger() - costs_[static_cast<size_t>(*shortest)].larger();
  }
  EXPECT_LT(spread, 2 * std::ssize(batches));  // on average, less than 2 tokens, of up to 30
}

TEST_F(BatchPlanOf, ABatchDependsOnItsNumberAlone) {
  const PlanSettings settings{.tokens = 100, .seed = 3, .largest = 0, .window = 64};
  const Batches all = all_of(BatchPlan(costs_, settings, 4));
  const BatchPlan plan(costs_, settings, 4);
  ASSERT_EQ(plan.size(), std::ssize(all));
  // Backward, so that windows are not cached in order, and across window boundaries.
  for (int64_t first = plan.size() - 1; first >= 0; --first) {
    const int64_t count = std::min<int64_t>(5, plan.size() - first);
    EXPECT_EQ(plan.batches(first, 5), Batches(all.begin() + first, all.begin() + first + count)) << first;
  }
  EXPECT_TRUE(plan.batches(plan.size(), 1).empty());
}

TEST_F(BatchPlanOf, EpochsAndSeedsDiffer) {
  const PlanSettings settings{.tokens = 100, .seed = 3, .largest = 0, .window = 64};
  PlanSettings other = settings;
  other.seed = 4;
  const Batches all = all_of(BatchPlan(costs_, settings, 0));
  EXPECT_NE(all, all_of(BatchPlan(costs_, settings, 1)));
  EXPECT_NE(all, all_of(BatchPlan(costs_, other, 0)));
}

// Two corpora; the draws from the first are less than half its size.
TEST_F(BatchPlanOf, AMixtureHasItsDrawsInBatchesThatFit) {
  const CorpusMixture mixture({{"large", 900, 0.1}, {"small", 103}}, 2, 3);
  ASSERT_LT(mixture.shares()[0], 450);
  for (const int64_t largest : {1003, 0}) {
    const PlanSettings settings{.tokens = 100, .seed = 3, .largest = largest, .window = 250, .mixture = mixture};
    for (const int64_t epoch : {0, 1, 5}) {
      const BatchPlan plan(costs_, settings, epoch);
      EXPECT_EQ(plan.windows(), largest > 0 ? 1 : 5);
      const std::vector<int64_t> seen = examples_that_fit(plan);
      std::vector<int64_t> expected;
      for (int64_t draw = 0; draw < 1003; ++draw) expected.push_back(mixture.example(epoch, draw));
      std::sort(expected.begin(), expected.end());
      EXPECT_EQ(seen, expected) << epoch;
      const auto of_large = std::lower_bound(seen.begin(), seen.end(), 900) - seen.begin();
      EXPECT_EQ(of_large, mixture.shares()[0]);
      EXPECT_EQ(plan.batches(plan.size() / 2, 3), BatchPlan(costs_, settings, epoch).batches(plan.size() / 2, 3));
    }
  }
}

TEST_F(BatchPlanOf, AMixtureOfOtherExamplesIsAnError) {
  const CorpusMixture mixture({{"a", 900}, {"b", 100}}, 2, 3);
  EXPECT_THROW(BatchPlan(costs_, {.tokens = 100, .seed = 3, .mixture = mixture}, 0), Error);
}

TEST_F(BatchPlanOf, AnExampleThatFitsIntoNoBatchIsNamed) {
  costs_[700].target = 101;
  test::expect_error([&] { const BatchPlan plan(costs_, {.tokens = 100, .seed = 3, .largest = 0, .window = 64}, 0); },
                     "example 700 has 101 tokens");
}

}  // namespace
}  // namespace plumb
