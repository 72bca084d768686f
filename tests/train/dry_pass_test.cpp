// Dry pass: trying the largest batches first changes nothing, and an error names the batch that needs too much memory.
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <utility>

#include "copy_task.h"
#include "plumb/base/error.h"
#include "plumb/base/json_fields.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/train/memory_error.h"
#include "plumb/train/trainer.h"
#include "support/errors.h"
#include "support/ranks.h"
#include "weighted_task.h"

namespace plumb {
namespace {

class DryPass : public ::testing::Test, protected test::CopyTaskFolder {
 protected:
  DryPass() {
    run_.model.norm = "batchnorm";  // has running averages
    run_.train.steps = 6;
    run_.train.log_every = 2;
    inner_ = completed_task();
    task_ = std::make_unique<test::WeightedTask>(*inner_);
    task_->before_loss = [this](const Batch& batch, const ForwardContext& context) {
      if (context.pass() != Pass::training) return;
      computed_.push_back(batch.tokens());
      if (context.step() >= fails_at_) (void)at::empty({int64_t{1} << 50});
    };
  }

  struct Trained {
    Tensor parameters, averages;
    Json history;
  };
  [[nodiscard]] Trained trained(bool dry_pass, const Group& group = {}) {
    EncoderDecoder learner(run_.model);
    learner.initialize(1);
    Trainer trainer(learner, run_.train, *task_);
    trainer.join(group);
    Json history = Json::array();
    for (TrainPoint point : trainer.run({}, {.dry_pass = dry_pass}).history) {
      point.tokens_per_second = 0;
      point.exchange_seconds = {};
      point.data_seconds = {};
      history.push_back(described_json(point));
    }
    std::vector<Tensor> averages;
    for (const Parameter& buffer : learner.parameters().buffers()) averages.push_back(buffer.value.flatten());
    return {learner.parameters().flat().detach().clone(), at::cat(averages), history};
  }

  std::unique_ptr<Task> inner_;
  std::unique_ptr<test::WeightedTask> task_;
  std::vector<int64_t> computed_;  // the tokens of each training batch
  int64_t fails_at_ = 1000;        // the first step without enough memory
};

TEST_F(DryPass, TakesTheLargestBatchesFirstAndChangesNothing) {
  const Trained without = trained(false);
  const std::vector<int64_t> in_order = std::exchange(computed_, {});
  ASSERT_EQ(in_order.size(), 6);
  const Trained with = trained(true);
  const size_t tried = computed_.size() - 6;
  EXPECT_GE(tried, 1);
  EXPECT_LE(tried, 2);
  EXPECT_GE(computed_[0], *std::max_element(in_order.begin(), in_order.end()));
  EXPECT_EQ(std::vector(computed_.begin() + static_cast<int64_t>(tried), computed_.end()), in_order);
  EXPECT_TRUE(with.parameters.equal(without.parameters));
  EXPECT_TRUE(with.averages.equal(without.averages));
  EXPECT_EQ(with.history, without.history);
}

TEST_F(DryPass, OfSeveralProcessesIsDecidedByTheFirst) {
  std::atomic<int64_t> passes = 0;
  task_->before_loss = [&](const Batch&, const ForwardContext& context) {
    if (context.pass() == Pass::training) ++passes;
  };
  run_.train.optimizer = "sgd";
  run_.train.learning_rate = 0.05;
  const Trained without = trained(false);
  EXPECT_EQ(passes.exchange(0), 6);
  for (const int64_t who : {0, 1}) {
    test::as_ranks(2, [&](const Group& group) {
      const Trained with = trained(group.rank() == who, group);
      EXPECT_LT((with.parameters - without.parameters).abs().max().item<double>(), 1e-4);
    });
    const int64_t found = passes.exchange(0);
    EXPECT_EQ(found > 12, who == 0) << found;
  }
}

TEST_F(DryPass, SaysWhichBatchNeedsTooMuch) {
  fails_at_ = 0;
  const Error error = test::error_of([&] { (void)trained(true); });
  const std::string what = error.what();
  EXPECT_TRUE(what.starts_with("memory has run out at a dry pass before step 1: ")) << what;
  EXPECT_NE(what.find(" target tokens, longest sequence "), what.npos) << what;
  EXPECT_NE(what.find(", sentences "), what.npos) << what;
  EXPECT_CONTAINS(error.hint(), "set train.micro_batch_tokens");
}

TEST_F(DryPass, StepsSayItToo) {
  fails_at_ = 4;
  run_.train.micro_batch_tokens = 16;
  const Error error = test::error_of([&] { (void)trained(true); });
  const std::string what = error.what();
  EXPECT_TRUE(what.starts_with("memory has run out at step 4: ")) << what;
  EXPECT_CONTAINS(error.hint(), "lower train.micro_batch_tokens");
}

TEST(MemoryError, IsToldFromOthers) {
  EXPECT_TRUE(is_out_of_memory(std::bad_alloc()));
  EXPECT_TRUE(is_out_of_memory(std::runtime_error("CUDA out of memory. Tried to allocate 20.00 MiB")));
  EXPECT_TRUE(is_out_of_memory(std::runtime_error("DefaultCPUAllocator: can't allocate memory: you tried to")));
  EXPECT_FALSE(is_out_of_memory(std::runtime_error("sizes do not match")));
  EXPECT_FALSE(is_out_of_memory(Error("the other process is out of memory")));
  const auto fails = [] { throw std::runtime_error("sizes do not match"); };
  EXPECT_THROW(with_enough_memory(
                   fails, [] { return "step 1"; }, ""),
               std::runtime_error);
}

}  // namespace
}  // namespace plumb
