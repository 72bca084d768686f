#include "plumb/train/step_source.h"

#include <gtest/gtest.h>

#include "copy_task.h"
#include "plumb/base/error.h"

namespace plumb {
namespace {

class Steps : public ::testing::Test {
 protected:
  Steps() {
    test::make_copy_task(folder_ / "data");
    task_ = make_task({}, DataDirectory::open(folder_ / "data"), "encoder-decoder");
    set_ = task_->dataset("train");
  }

  /// Expects the share of the step that begins with batch `first`.
  void expect_share(const StepShare& share, int64_t epoch, int64_t first, int64_t accumulate,
                    const Division& division) const {
    const auto plan = plan_batches(set_->costs(), kTokens, 7, epoch);
    StepSource::Batches batches;
    for (int64_t i = first; i < std::min(first + accumulate, std::ssize(plan)); ++i)
      batches.push_back(plan[static_cast<size_t>(i)]);
    const StepShare expected = step_share(*set_, set_->costs(), batches, division);
    EXPECT_EQ(share.weight, expected.weight);
    ASSERT_EQ(share.micro_batches.size(), expected.micro_batches.size());
    for (size_t i = 0; i < expected.micro_batches.size(); ++i) {
      EXPECT_EQ(share.micro_batches[i].batch, expected.micro_batches[i].batch);
      EXPECT_EQ(share.micro_batches[i].placeholder, expected.micro_batches[i].placeholder);
    }
  }

  static constexpr int64_t kTokens = 64;
  PlanSettings settings_{.tokens = kTokens, .seed = 7};
  test::TemporaryDirectory folder_;
  std::unique_ptr<Task> task_;
  std::unique_ptr<Dataset> set_;
};

TEST_F(Steps, GetTheSharesOfThePlanOverSeveralEpochs) {
  for (const int64_t accumulate : {1, 3}) {
    for (const Division& division : {Division{}, Division{1, 2, 20}}) {
      StepSource source(*set_, settings_, accumulate);
      for (int64_t epoch = 0; epoch < 3; ++epoch) {
        source.go_to(epoch);
        EXPECT_EQ(source.plan().epoch(), epoch);
        for (int64_t first = 0; first < source.plan().size(); first += source.count(first))
          expect_share(source.take(first, division), epoch, first, accumulate, division);
      }
      EXPECT_GT(source.wait_seconds(), 0);
    }
  }
}

// For example, after a rollback, when resuming, or when the number of processes changes.
TEST_F(Steps, GetTheRightShareWhateverWasPrepared) {
  StepSource source(*set_, settings_, 1);
  source.go_to(0);
  const int64_t last = source.plan().size() - 1;
  expect_share(source.take(last, {}), 0, last, 1, {});          // prepares the next epoch
  expect_share(source.take(2, {}), 0, 2, 1, {});                // another step of this one
  expect_share(source.take(2, {}), 0, 2, 1, {});                // the same again
  expect_share(source.take(3, {0, 2, 0}), 0, 3, 1, {0, 2, 0});  // another division
  source.go_to(5);
  expect_share(source.take(0, {}), 5, 0, 1, {});
  source.go_to(0);
  expect_share(source.take(1, {}), 0, 1, 1, {});
}

/// Batches whose labels encode the draw (seed and epoch).
class Drawn final : public Dataset {
 public:
  [[nodiscard]] int64_t size() const override { return 12; }
  [[nodiscard]] ExampleCost cost(int64_t) const override { return {2, 1}; }
  [[nodiscard]] Batch batch(std::span<const int64_t> examples) const override { return drawn(examples, {0, -1}); }
  [[nodiscard]] Batch drawn(std::span<const int64_t> examples, const Draw& draw) const override {
    Batch batch;
    for (const int64_t i : examples) {
      batch.source.insert(batch.source.end(), 2, i);
      batch.source_layout.append(2);
      batch.labels.push_back(static_cast<int64_t>(draw.seed) * 1000 + draw.epoch);
      batch.examples.push_back(i);
    }
    return batch;
  }
};

TEST(StepsOfDrawnExamples, AreOfTheirEpoch) {
  const Drawn set;
  for (const Division& division : {Division{}, Division{1, 2, 4}}) {
    StepSource source(set, {.tokens = 8, .seed = 7}, 1);
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      source.go_to(epoch);
      const auto expect_epoch = [&](const StepShare& share) {
        for (const MicroBatch& part : share.micro_batches) {
          for (const int64_t label : part.batch.labels) EXPECT_EQ(label, 7000 + epoch);
        }
      };
      expect_epoch(source.share_of(source.batches(0), division));
      for (int64_t first = 0; first < source.plan().size(); first += source.count(first))
        expect_epoch(source.take(first, division));
    }
  }
}

TEST_F(Steps, AnExampleThatFitsIntoNoBatchIsAnError) {
  settings_.tokens = 2;
  StepSource source(*set_, settings_, 1);
  EXPECT_THROW(source.go_to(0), Error);
}

}  // namespace
}  // namespace plumb
