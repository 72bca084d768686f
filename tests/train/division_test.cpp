// A step depends only on the seed and its number: the division of its work among processes and micro-batches does not
// change the examples, the dropout masks or the divisor of the loss.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "copy_task.h"
#include "plumb/data/batches.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/train/trainer.h"
#include "support/ranks.h"
#include "weighted_task.h"

namespace plumb {
namespace {

constexpr double kMomentum = 0.9, kRate = 0.05, kSmoothing = 0.1;

struct Divided {
  int64_t processes = 1;
  int64_t micro_batch_tokens = 0;
};

/// 120 ragged pairs, some of weight 0, in about eight batches of 64 tokens; the last of an epoch is smaller.
class DividedSteps : public ::testing::Test, protected test::CopyTaskFolder {
 protected:
  DividedSteps() {
    run_.model.dropout = 0.3;
    run_.model.attention_dropout = 0.2;
    run_.model.activation_dropout = 0.25;
    run_.model.d_model = 12;  // rows do not start at multiples of eight
    run_.model.heads = 2;
    run_.train.optimizer = "sgd";
    run_.train.schedule = "constant";
    run_.train.learning_rate = kRate;
    run_.train.label_smoothing = kSmoothing;
    run_.train.steps = 20;
    run_.train.log_every = 1;
    inner_ = completed_task();
    task_ = std::make_unique<test::WeightedTask>(*inner_);
  }

  [[nodiscard]] EncoderDecoder model(uint64_t seed = 1) const {
    EncoderDecoder made(run_.model, at::kDouble);
    made.initialize(seed);
    return made;
  }

  struct Trained {
    Tensor parameters;
    std::vector<TrainPoint> history;
  };

  /// The reference, an independent loop with undivided steps: gradient descent with momentum on the mean loss of the
  /// examples of `accumulate` batches of the plan, or fewer at the end of the epoch.
  [[nodiscard]] Trained expected(size_t accumulate) const {
    EncoderDecoder learner = model();
    const auto set = task_->dataset("train");
    const Tensor flat = learner.parameters().flat().detach();
    Tensor velocity = at::zeros_like(flat);
    Trained found;
    int64_t epoch = 0;
    auto plan = plan_batches(set->costs(), run_.train.batch_tokens, 1, epoch);
    EXPECT_GT(plan.size() % 3, 0);
    size_t next = 0;
    for (int64_t step = 1; step <= run_.train.steps.in_steps(); ++step) {
      std::vector<int64_t> examples;
      for (size_t i = 0; i < accumulate && next < plan.size(); ++i, ++next)
        examples.insert(examples.end(), plan[next].begin(), plan[next].end());
      ForwardContext context(run_.model.dropout, 1, step);
      const Batch whole = set->batch(examples);
      const double weight = whole.weight() > 0 ? whole.weight() : 1;  // all examples may have weight 0
      const Loss loss = inner_->loss(learner, whole, {kSmoothing, 1 / weight, false}, context);
      velocity = kMomentum * velocity + joined(gradients({loss.value}, learner.parameters().values(), {}));
      flat.sub_(kRate * velocity);
      TrainPoint point;
      point.loss = loss.value.item<double>();
      point.nll = loss.nll / weight;
      found.history.push_back(point);
      if (next < plan.size()) continue;
      next = 0;
      plan = plan_batches(set->costs(), run_.train.batch_tokens, 1, ++epoch);
    }
    EXPECT_GE(epoch, 1);
    found.parameters = flat.clone();
    return found;
  }

  [[nodiscard]] TrainConfig config_of(const Divided& divided) const {
    TrainConfig config = run_.train;
    config.micro_batch_tokens = divided.micro_batch_tokens;
    return config;
  }

  [[nodiscard]] Trained trained(const Divided& divided) const {
    Trained found;
    test::as_ranks(divided.processes, [&](const Group& group) {
      EncoderDecoder learner = model(1 + static_cast<uint64_t>(group.rank()));
      Trainer trainer(learner, config_of(divided), *task_);
      trainer.join(group);
      trainer.run();
      if (group.rank() == 0) found = {learner.parameters().flat().detach().clone(), trainer.history()};
    });
    return found;
  }

  static void expect_same(const Trained& found, const Trained& wanted, const std::string& where) {
    EXPECT_LT((found.parameters - wanted.parameters).abs().max().item<double>(), 1e-12) << where;
    ASSERT_EQ(found.history.size(), wanted.history.size()) << where;
    for (size_t i = 0; i < found.history.size(); ++i) {
      EXPECT_NEAR(found.history[i].loss, wanted.history[i].loss, 1e-12) << where << ", step " << i + 1;
      EXPECT_NEAR(found.history[i].nll, wanted.history[i].nll, 1e-12) << where << ", step " << i + 1;
    }
  }

  std::unique_ptr<Task> inner_;
  std::unique_ptr<test::WeightedTask> task_;
};

TEST_F(DividedSteps, IntoMicroBatchesAndProcessesIsOneBatch) {
  const Trained one = expected(1);
  for (const Divided& divided : {Divided{1, 0}, {1, 32}, {1, 10}, {1, 1}, {2, 0}, {3, 0}, {4, 0}, {2, 13}, {3, 6}}) {
    expect_same(trained(divided), one,
                fmt::format("{} processes, {} tokens", divided.processes, divided.micro_batch_tokens));
  }
}

TEST_F(DividedSteps, OfAccumulatedBatchesIsOneBatchThatLastsToTheEndOfTheEpoch) {
  run_.train.accumulate = 3;
  const Trained one = expected(3);
  for (const Divided& divided : {Divided{1, 0}, {1, 20}, {2, 0}, {4, 9}}) {
    expect_same(trained(divided), one,
                fmt::format("{} processes, {} tokens", divided.processes, divided.micro_batch_tokens));
  }
}

TEST_F(DividedSteps, OfBatchesSmallerThanTheProcesses) {
  run_.train.batch_tokens = 7;
  run_.train.steps = 90;
  const Trained one = expected(1);
  expect_same(trained({4, 0}), one, "4 processes");
  expect_same(trained({2, 3}), one, "2 processes, 3 tokens");
}

TEST_F(DividedSteps, MayChangeWhenARunGoesOn) {
  const Trained one = expected(1);
  struct Session {
    int64_t until;
    Divided divided;
  };
  std::vector<TrainPoint> history;
  Tensor parameters;
  std::filesystem::path before;
  for (const auto& [until, divided] : {Session{7, {2, 0}}, {11, {1, 17}}, {13, {1, 0}}, {20, {4, 9}}}) {
    const auto checkpoint = folder_ / fmt::format("step-{}", until);
    std::filesystem::create_directory(checkpoint);
    test::as_ranks(divided.processes, [&, until = until, divided = divided](const Group& group) {
      EncoderDecoder learner = model(1 + static_cast<uint64_t>(group.rank()));
      Trainer trainer(learner, config_of(divided), *task_);
      if (group.rank() == 0 && !before.empty()) {
        trainer.load(before);
        trainer.set_history(history);
      }
      trainer.join(group);
      test::Moments moments;
      moments.stop = [&] { return trainer.step() == until; };
      trainer.run(moments);
      if (group.rank() > 0) return;
      trainer.save(checkpoint);
      history = trainer.history();
      parameters = learner.parameters().flat().detach().clone();
    });
    before = checkpoint;
  }
  expect_same({parameters, history}, one, "2, 1, 1 and 4 processes");
}

TEST_F(DividedSteps, KeepsTheStatisticsOfSynchronizedNormsOverProcesses) {
  for (const char* norm : {"batchnorm", "powernorm"}) {
    run_.model.norm = norm;
    expect_same(trained({3, 0}), trained({1, 0}), fmt::format("{} of 3 processes", norm));
    // The statistics are over a micro-batch, as documented; all processes still have the same number of them.
    EXPECT_TRUE(trained({3, 12}).parameters.isfinite().all().item<bool>()) << norm;
  }
}

}  // namespace
}  // namespace plumb
