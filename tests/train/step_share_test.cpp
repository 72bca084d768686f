#include "plumb/train/step_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "copy_task.h"
#include "plumb/task/datasets.h"
#include "weighted_task.h"

namespace plumb {
namespace {

using Plan = std::vector<std::vector<int64_t>>;

TEST(DivideBatch, IntoAsFewPartsAsPossibleOfNearlyEqualSize) {
  Random random(3, "test");
  std::vector<ExampleCost> costs;
  for (int i = 0; i < 100; ++i)
    costs.push_back({1 + static_cast<int64_t>(random.below(9)), 1 + static_cast<int64_t>(random.below(9))});
  std::vector<int64_t> all(costs.size());
  std::iota(all.begin(), all.end(), 0);
  int64_t larger = 0;
  for (const ExampleCost& cost : costs) larger += cost.larger();
  for (const int64_t tokens : {1, 9, 20, 77, 300, 10000}) {
    std::vector<int64_t> joined, sizes;
    for (const auto& part : divide_batch(costs, all, tokens)) {
      ASSERT_FALSE(part.empty());
      int64_t source = 0, target = 0;
      for (const int64_t i : part) {
        source += costs[static_cast<size_t>(i)].source;
        target += costs[static_cast<size_t>(i)].target;
      }
      if (part.size() > 1) {
        EXPECT_LE(std::max(source, target), tokens);
      }
      sizes.push_back(std::max(source, target));
      joined.insert(joined.end(), part.begin(), part.end());
    }
    EXPECT_EQ(joined, all) << tokens;
    // Filling each part as far as possible gives the fewest parts.
    size_t fewest = 0;
    int64_t source = tokens, target = tokens;
    for (const ExampleCost& cost : costs) {
      source += cost.source;
      target += cost.target;
      if (std::max(source, target) <= tokens) continue;
      ++fewest;
      source = cost.source;
      target = cost.target;
    }
    EXPECT_EQ(sizes.size(), fewest) << tokens;
    // No part exceeds the average by more than the largest example.
    EXPECT_LE(*std::max_element(sizes.begin(), sizes.end()), larger / static_cast<int64_t>(fewest) + 9) << tokens;
  }
  EXPECT_EQ(divide_batch(costs, {5, 3, 8}, 0), (Plan{{5, 3, 8}}));
  EXPECT_EQ(divide_batch(costs, {}, 7), Plan{{}});
}

class StepShares : public ::testing::Test {
 protected:
  StepShares() {
    test::make_copy_task(folder_ / "data");
    inner_ = make_task({}, DataDirectory::open(folder_ / "data"), "encoder-decoder");
    set_ = test::WeightedTask(*inner_).dataset("train");
    costs_ = set_->costs();
  }

  test::TemporaryDirectory folder_;
  std::unique_ptr<Task> inner_;
  std::unique_ptr<Dataset> set_;
  std::vector<ExampleCost> costs_;
};

TEST_F(StepShares, PlaceEveryTokenOfTheStepOnce) {
  const Plan batches = {{3, 50, 7, 8, 2}, {100}, {20, 21, 22}};
  // The rows of the step, from one whole batch.
  std::vector<int64_t> examples;
  for (const auto& batch : batches) examples.insert(examples.end(), batch.begin(), batch.end());
  const Batch whole = set_->batch(examples);
  for (const int64_t processes : {1, 2, 4}) {
    for (const int64_t tokens : {0, 1, 6}) {
      std::vector<std::vector<int64_t>> source(whole.source.size()), target(whole.target_input.size());
      std::vector<size_t> counts;
      for (int64_t rank = 0; rank < processes; ++rank) {
        const StepShare share = step_share(*set_, costs_, batches, {rank, processes, tokens});
        EXPECT_DOUBLE_EQ(share.weight, whole.weight());
        counts.push_back(share.micro_batches.size());
        for (const auto& [batch, placeholder] : share.micro_batches) {
          if (placeholder) continue;
          const auto put = [](const Ragged& layout, const std::vector<int64_t>& ids, auto& to) {
            for (int64_t s = 0; s < layout.sequences(); ++s) {
              for (int64_t i = 0; i < layout.length(s); ++i)
                to[static_cast<size_t>(layout.origins()[static_cast<size_t>(s)] + i)].push_back(
                    ids[static_cast<size_t>(layout.begin(s) + i)]);
            }
          };
          put(batch.source_layout, batch.source, source);
          put(batch.target_layout, batch.target_input, target);
        }
      }
      for (size_t i = 0; i < source.size(); ++i) EXPECT_EQ(source[i], std::vector{whole.source[i]});
      for (size_t i = 0; i < target.size(); ++i) EXPECT_EQ(target[i], std::vector{whole.target_input[i]});
      EXPECT_EQ(std::count(counts.begin(), counts.end(), counts[0]), processes);  // the same for all
    }
  }
}

TEST_F(StepShares, AnUndividedBatchIsTakenAsItIs) {
  const StepShare share = step_share(*set_, costs_, Plan{{3, 50, 7}}, {});
  ASSERT_EQ(share.micro_batches.size(), 1);
  EXPECT_EQ(share.micro_batches[0].batch, set_->batch(std::vector<int64_t>{3, 50, 7}));
}

/// Blocks of lines that are separated by EOS (id 2), each line a sequence.
TextDataset lines_in_blocks(const std::filesystem::path& split) {
  write_split(split, std::vector<std::vector<int32_t>>(3), {{5, 6, 2, 7, 8, 9}, {5, 5, 5, 5}, {6, 2, 7, 2, 8}});
  return {Split::open(split).as_running_text(), {}, {0, true}};
}

TEST(StepSharesOfText, ExamplesMayHaveSeveralSequences) {
  test::TemporaryDirectory folder;
  const TextDataset set = lines_in_blocks(folder / "split");
  const auto costs = set.costs();
  for (const int64_t rank : {0, 1}) {
    const StepShare share = step_share(set, costs, Plan{{2, 0, 1}}, {rank, 2, 0});
    ASSERT_EQ(share.micro_batches.size(), 1);
    EXPECT_EQ(share.weight, 15);
    // Rows of the whole: 5 of block 2 (lines of 2, 2 and 1), then 6 of block 0 (3 and 3), then 4 of block 1.
    const auto expected = rank == 0 ? std::vector<int64_t>{0, 2, 4, 11} : std::vector<int64_t>{5, 8};
    EXPECT_EQ(share.micro_batches[0].batch.target_layout.origins(), expected);
  }
}

// For example, with a corpus that is sampled more than once per epoch.
TEST(StepSharesOfText, AnExampleMayOccurTwiceInARow) {
  test::TemporaryDirectory folder;
  const TextDataset set = lines_in_blocks(folder / "split");
  const auto costs = set.costs();
  for (const int64_t rank : {0, 1}) {
    const StepShare share = step_share(set, costs, Plan{{2, 2, 0, 1}}, {rank, 2, 0});
    ASSERT_EQ(share.micro_batches.size(), 1);
    EXPECT_EQ(share.weight, 20);
    // Rows of the whole: twice 5 of block 2 (lines of 2, 2 and 1), then 6 of block 0 (3 and 3), then 4 of block 1.
    const auto expected = rank == 0 ? std::vector<int64_t>{0, 2, 4, 10, 13} : std::vector<int64_t>{5, 7, 9, 16};
    EXPECT_EQ(share.micro_batches[0].batch.target_layout.origins(), expected);
  }
}

TEST(LargestBatches, ThatOfTheMostTokensAndThatOfTheLongestSequence) {
  const std::vector<ExampleCost> costs = {{5, 5}, {9, 2}, {4, 4}, {4, 4}, {4, 4}, {1, 9}};
  EXPECT_EQ(largest_batches(costs, {{0}, {2, 3, 4}, {1}}), (std::vector<size_t>{1, 2}));
  EXPECT_EQ(largest_batches(costs, {{0}, {2, 3, 4, 5}, {1}}), (std::vector<size_t>{1}));
  EXPECT_EQ(largest_batches(costs, {{1}, {0, 5}}), (std::vector<size_t>{1}));
  EXPECT_TRUE(largest_batches(costs, {}).empty());
}

TEST(DescribeBatches, NamesTokensLengthAndSentences) {
  const std::vector<ExampleCost> costs(2000, ExampleCost{3, 4});
  EXPECT_EQ(describe_batches(costs, Plan{{17}}), "3 source and 4 target tokens, longest sequence 4, sentence 17");
  std::vector<int64_t> many(1000);
  std::iota(many.begin(), many.end(), 5);
  EXPECT_EQ(describe_batches(costs, Plan{{3}, many}),
            "3,003 source and 4,004 target tokens, longest sequence 4, sentences 3, 5, 6, 7, 8, 9, 10, 11, … (1,001 in "
            "all)");
  EXPECT_EQ(describe_batches(std::vector<ExampleCost>{{0, 7}, {0, 2}}, Plan{{1, 0}}),
            "9 target tokens, longest sequence 7, sentences 1, 0");
}

}  // namespace
}  // namespace plumb
