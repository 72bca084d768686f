// Runs that roll back to a checkpoint after numerical trouble.
#include <gtest/gtest.h>

#include <cmath>

#include "plumb/run/metrics_file.h"
#include "plumb/train/trainer.h"
#include "plumb/trouble/trouble.h"
#include "support/ranks.h"
#include "troubled_run.h"

namespace plumb {
namespace {

class Rollback : public test::TroubledRun {};

TEST_F(Rollback, ARollbackIsTheRunFromTheCheckpointAtALowerRate) {
  use_sgd();
  run_.train.steps = 12;
  run_.train.checkpoint_every = 4;
  run_.train.log_every = 2;
  run_.train.trouble.on_nonfinite = "rollback";
  run_.train.trouble.rollback_rate = 0.25;
  int left = 3;  // fails once, and in both repetitions of the inspection
  const test::DisturbedTask task(*task_, [&left](const Tensor& loss, int64_t step, Model&) {
    return step == 7 && left-- > 0 ? loss * NAN : loss;
  });
  EncoderDecoder trained = model(at::kDouble), expected = model(at::kDouble);
  const TrainResult result = train(trained, run_.train, task);
  EXPECT_EQ(result.outcome, RunOutcome::finished);
  for (int64_t step = 1; step <= 12; ++step) {
    ForwardContext context;
    const Loss loss = expected.loss(train_->batch(examples_of_step(step)), {0.1, std::nullopt, false}, context);
    const double rate = step <= 4 ? 0.05 : 0.0125;
    expected.parameters().flat().sub_(rate * joined(gradients({loss.value}, expected.parameters().values(), {})));
  }
  EXPECT_LT((trained.parameters().flat() - expected.parameters().flat()).abs().max().item<double>(), 1e-12);
  std::vector<int64_t> steps;
  for (const TrainPoint& point : result.history) steps.push_back(point.step);
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(result.history[2].learning_rate, 0.05);
  EXPECT_EQ(result.history[3].learning_rate, 0.0125);
  ASSERT_EQ(result.troubles.size(), 1U);
  EXPECT_EQ(result.troubles[0].step, 7);
  EXPECT_EQ(result.troubles[0].to, 4);
  EXPECT_EQ(result.troubles[0].rate_factor, 0.25);
}

TEST_F(Rollback, ARollbackMayPassOverTheBatchesSince) {
  use_sgd();
  run_.train.steps = 10;
  run_.train.checkpoint_every = 4;
  run_.train.trouble.on_nonfinite = "rollback";
  run_.train.trouble.rollback_rate = 1;
  run_.train.trouble.pass_over = true;
  EncoderDecoder trained = model(at::kDouble), expected = model(at::kDouble);
  const TrainResult result = train(trained, run_.train, nan_at({6, 9}));  // back to 4, then to 8
  EXPECT_EQ(result.outcome, RunOutcome::finished);
  for (const int64_t step : {1, 2, 3, 4, 7, 8, 10}) {
    ForwardContext context;
    const Loss loss = expected.loss(train_->batch(examples_of_step(step)), {0.1, std::nullopt, false}, context);
    expected.parameters().flat().sub_(0.05 * joined(gradients({loss.value}, expected.parameters().values(), {})));
  }
  EXPECT_LT((trained.parameters().flat() - expected.parameters().flat()).abs().max().item<double>(), 1e-12);
  EXPECT_EQ(result.history.back().skipped_steps, 3);
}

TEST_F(Rollback, RollbacksThatDoNotHelpEnd) {
  run_.train.trouble.on_nonfinite = "rollback";
  run_.train.trouble.rollback_limit = 2;
  EncoderDecoder learner = model();
  const TrainResult result = train(learner, run_.train, nan_at({9}));
  EXPECT_EQ(result.outcome, RunOutcome::diverged);
  EXPECT_EQ(result.steps, 8);
  ASSERT_EQ(result.troubles.size(), 3U);
  EXPECT_EQ(result.troubles[1].rate_factor, 0.25);
  EXPECT_EQ(result.troubles[2].action, TroubleAction::diverge);
}

TEST_F(Rollback, ALossFarAboveAGuessIsRolledBack) {
  run_.train.steps = 30;
  run_.train.trouble.on_nonfinite = "rollback";
  run_.train.trouble.pass_over = true;
  const test::DisturbedTask task(
      *task_, [](const Tensor& loss, int64_t step, Model&) { return step == 25 ? loss + 100 : loss; });
  EncoderDecoder learner = model();
  const TrainResult result = train(learner, run_.train, task);
  EXPECT_EQ(result.outcome, RunOutcome::finished);
  ASSERT_EQ(result.troubles.size(), 1U);
  EXPECT_EQ(result.troubles[0].cause, TroubleCause::limit);
  EXPECT_EQ(result.troubles[0].to, 21);
  EXPECT_EQ(result.history.back().skipped_steps, 4);
}

TEST_F(Rollback, EveryProcessGoesBack) {
  use_sgd();
  run_.train.checkpoint_every = 4;
  run_.train.trouble.on_nonfinite = "rollback";
  run_.train.trouble.pass_over = true;
  const test::DisturbedTask task = nan_at({6});
  EncoderDecoder one = model(at::kDouble);
  train(one, run_.train, task);
  test::as_ranks(2, [&](const Group& group) {
    EncoderDecoder learner = model(at::kDouble);
    Trainer trainer(learner, run_.train, task);
    trainer.join(group);
    const TrainResult result = trainer.run();
    EXPECT_EQ(result.outcome, RunOutcome::finished);
    EXPECT_EQ(result.troubles.size(), 1U);
    EXPECT_LT((learner.parameters().flat() - one.parameters().flat()).abs().max().item<double>(), 1e-10);
  });
}

}  // namespace
}  // namespace plumb
