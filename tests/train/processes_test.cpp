// Several processes that train one model. Tests that only need each process's share use threads instead.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "plumb/model/encoder_decoder.h"
#include "plumb/run/directory.h"
#include "run_in_processes.h"
#include "support/ranks.h"

namespace plumb {
namespace {

using test::as_ranks;

/// With norms over the batch. division_test.cpp and mesh_test.cpp have the others.
class SharedTraining : public ::testing::TestWithParam<std::tuple<std::string, int64_t>>,
                       protected test::CopyTaskFolder {
 protected:
  SharedTraining() {
    run_.model.dropout = 0;
    run_.model.norm = std::get<0>(GetParam());
    // Adam would turn rounding errors in zero gradients, such as those of biases before BatchNorm, into steps.
    run_.train.optimizer = "sgd";
    run_.train.learning_rate = 0.05;
    task_ = completed_task();
  }

  struct Trained {
    Tensor parameters;
    TrainResult result;
  };
  Trained trained(const Group& group = {}, uint64_t seed = 1) const {
    EncoderDecoder model(run_.model, at::kDouble);
    model.initialize(seed);
    Trainer trainer(model, run_.train, *task_);
    trainer.join(group);
    TrainResult result = trainer.run();
    return {model.parameters().flat().detach().clone(), std::move(result)};
  }

  std::unique_ptr<Task> task_;
};

TEST_P(SharedTraining, IsThatOfOneProcess) {
  const Trained one = trained();
  as_ranks(std::get<1>(GetParam()), [&](const Group& group) {
    // Ranks above 0 start with different parameters, and take those of rank 0.
    const Trained several = trained(group, 1 + static_cast<uint64_t>(group.rank()));
    EXPECT_LT((several.parameters - one.parameters).abs().max().item<double>(), 1e-10);
    ASSERT_EQ(several.result.history.size(), one.result.history.size());
    for (size_t i = 0; i < one.result.history.size(); ++i) {
      const TrainPoint& expected = one.result.history[i];
      const TrainPoint& found = several.result.history[i];
      EXPECT_NEAR(found.nll, expected.nll, 1e-10);
      EXPECT_NEAR(found.gradient_norm.value(), expected.gradient_norm.value(), 1e-10);
      ASSERT_EQ(found.metrics.get("valid_nll").has_value(), expected.metrics.get("valid_nll").has_value());
      if (expected.metrics.get("valid_nll")) {
        EXPECT_NEAR(*found.metrics.get("valid_nll"), *expected.metrics.get("valid_nll"), 1e-10);
      }
      ASSERT_TRUE(found.exchange_bytes.has_value());
      EXPECT_GE(*found.exchange_bytes, 8.0 * static_cast<double>(one.parameters.numel()));
    }
  });
}

TEST_P(SharedTraining, TakesBatchesOfFewerPairsThanProcesses) {
  run_.train.batch_tokens = 8;
  run_.train.steps = 6;
  const Trained one = trained();
  as_ranks(std::get<1>(GetParam()), [&](const Group& group) {
    const Tensor difference = trained(group).parameters - one.parameters;
    EXPECT_TRUE(difference.isfinite().all().item<bool>());
    EXPECT_LT(difference.abs().max().item<double>(), 1e-10);
  });
}

INSTANTIATE_TEST_SUITE_P(Of, SharedTraining,
                         ::testing::Combine(::testing::Values("batchnorm", "powernorm"), ::testing::Values(2, 3)),
                         [](const auto& info) {
                           return fmt::format("{}{}", std::get<0>(info.param), std::get<1>(info.param));
                         });

class SeveralProcesses : public test::RunInProcesses {
 protected:
  SeveralProcesses() {
    run_.model.dropout = 0;
    run_.train.score_every = -1;
  }
};

TEST_F(SeveralProcesses, TheirNumberMayChangeWhenARunGoesOn) {
  run_.model.dropout = 0.2;
  const TrainResult one = run_training(run_, folder_ / "one");
  TrainResult last;
  int64_t until = 0;
  for (const auto& [processes, micro_batch_tokens] : {std::pair<int64_t, int64_t>{2, 0}, {1, 20}, {4, 0}}) {
    run_.train.processes = processes;
    run_.train.micro_batch_tokens = micro_batch_tokens;
    last = run_training(run_, folder_ / "run", test::stop_after(7), {.dry_pass = true});
    until += 7;
    EXPECT_EQ(last.steps, std::min<int64_t>(until, 20));
    EXPECT_EQ(load_run_config(folder_ / "run").train.processes, processes);
  }
  expect_same_losses(last, one);
}

TEST_F(SeveralProcesses, AProcessThatCannotStartIsAnError) {
  ::setenv("PLUMB_PROGRAM", "/bin/false", 1);
  run_.train.processes = 2;
  EXPECT_EQ(test::message_of([&] { run_training(run_, folder_ / "run"); }), "a worker process has exited");
}

}  // namespace
}  // namespace plumb
