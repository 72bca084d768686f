// Processes that divide the layers of a model: everything is that of one process.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "copy_task.h"
#include "divided_training.h"
#include "plumb/base/error.h"
#include "plumb/run/directory.h"
#include "plumb/train/run_training.h"
#include "support/errors.h"
#include "support/paths.h"

namespace plumb {
namespace {

using test::Architecture;
using test::Shape;
using test::without_biases;

const std::vector<Architecture> kArchitectures = {
    test::kPostLn,
    test::kLlama,
    test::kGopher,
    test::kGated,
    {"HybridNorm", [](RunConfig& run) { run.model.residual = "hybridnorm"; }},
};

class TensorParallel : public test::DividedTraining {};

TEST_P(TensorParallel, IsThatOfOneProcess) {
  const Trained one = trained({});
  for (const Shape& shape : {Shape{2, 2}, {4, 2}}) expect_same(trained(shape), one, to_string(shape));
}

TEST_P(TensorParallel, ACheckpointDoesNotKnowTheMesh) {
  const Trained one = trained({});
  for (const auto& [first, second] : {std::pair<Shape, Shape>{{2, 2}, {1, 1}}, {{1, 1}, {4, 2}}}) {
    const auto checkpoint = folder_ / fmt::format("of-{}", first.processes);
    std::filesystem::create_directory(checkpoint);
    static_cast<void>(trained(first, 5, {}, checkpoint));
    expect_same(trained(second, 12, checkpoint), one, fmt::format("{}, then {}", first.processes, second.processes));
  }
}

TEST_P(TensorParallel, WithAnAverageOfTheWeightsAndAStateThatIsSharedOut) {
  run_.train.average_decay = 0.6;
  run_.train.shard = "optimizer";
  expect_same(trained({4, 2}), trained({}), "4 processes, 2 per layer");
}

INSTANTIATE_TEST_SUITE_P(Of, TensorParallel, ::testing::ValuesIn(kArchitectures),
                         [](const auto& info) { return info.param.name; });

class TensorParallelRun : public ::testing::Test {
 protected:
  TensorParallelRun() : run_(test::copy_run(folder_ / "data")) {
    ::setenv("PLUMB_PROGRAM", test::plumb_program().c_str(), 1);
    test::make_copy_task(folder_ / "data");
    run_.train.optimizer = "sgd";
    run_.train.learning_rate = 0.05;
  }
  void TearDown() override { ::unsetenv("PLUMB_PROGRAM"); }

  /// The error of a run of 2 processes that divide the layers; it must not have begun.
  std::string refusal(const std::function<void(RunConfig&)>& set) {
    RunConfig run = run_;
    run.train.processes = run.train.tensor_parallel = 2;
    set(run);
    const std::string message = test::message_of([&] { run_training(run, folder_ / "refused"); });
    EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
    return message;
  }

  test::TemporaryDirectory folder_;
  RunConfig run_;
};

TEST_F(TensorParallelRun, IsThatOfOneProcessWithItsMetricsAndGoesOnInOne) {
  run_.model.dropout = 0.2;
  const TrainResult one = run_training(run_, folder_ / "one");
  run_.train.processes = 4;
  run_.train.tensor_parallel = 2;
  TrainHooks hooks;
  hooks.stop = [left = 9]() mutable { return --left == 0; };
  EXPECT_EQ(run_training(run_, folder_ / "run", hooks).outcome, RunOutcome::stopped);
  hooks.stop = [left = 6]() mutable { return --left == 0; };
  run_.train.processes = run_.train.tensor_parallel = 1;
  EXPECT_EQ(run_training(run_, folder_ / "run", hooks).outcome, RunOutcome::stopped);
  run_.train.processes = run_.train.tensor_parallel = 2;
  const TrainResult last = run_training(run_, folder_ / "run");
  EXPECT_EQ(last.outcome, RunOutcome::finished);
  EXPECT_EQ(load_run_config(folder_ / "run").train.tensor_parallel, 2);
  ASSERT_EQ(last.history.size(), one.history.size());
  for (size_t i = 0; i < one.history.size(); ++i) EXPECT_NEAR(last.history[i].nll, one.history[i].nll, 1e-4);
  ASSERT_TRUE(one.metrics.get("bleu"));
  EXPECT_NEAR(last.metrics.get("bleu").value(), *one.metrics.get("bleu"), 1e-3);  // of sentences decoded together
}

TEST_F(TensorParallelRun, RefusesSizesThatDoNotFitAndNamesTheNearest) {
  run_.model.d_model = 24;
  const auto hint = [&](const std::function<void(RunConfig&)>& set) {
    RunConfig run = run_;
    set(run);
    try {
      run_training(run, folder_ / "refused");
    } catch (const Error& error) {
      return error.hint();
    }
    return std::string();
  };
  const auto three_heads = [](RunConfig& run) {
    run.train.processes = run.train.tensor_parallel = 4;
    run.model.heads = 6;
  };
  EXPECT_EQ(refusal(three_heads), "model.heads = 6 cannot be divided among the 4 processes of train.tensor_parallel");
  EXPECT_EQ(hint(three_heads),
            "the nearest size that fits is 8; the nearest train.tensor_parallel that fits this model is 2");
  EXPECT_EQ(refusal([](RunConfig& run) { run.model.feed_forward = 33; }),
            "model.feed_forward = 33 cannot be divided among the 2 processes of train.tensor_parallel");
  EXPECT_EQ(refusal([](RunConfig& run) { run.model.kv_heads = 1; }),
            "model.kv_heads = 1 cannot be divided among the 2 processes of train.tensor_parallel");
  EXPECT_EQ(refusal([](RunConfig& run) { run.train.processes = 3; }),
            "train.processes = 3 is not a multiple of train.tensor_parallel = 2");
}

TEST_F(TensorParallelRun, RefusesWhatCannotBeDivided) {
  const std::string end = " cannot be combined with train.tensor_parallel";
  const auto refused = [&](const std::function<void(RunConfig&)>& set, const std::string& what) {
    const std::string message = refusal(set);
    EXPECT_EQ(message.substr(0, what.size() + end.size()), what + end);
  };
  for (const char* optimizer : {"adafactor", "lamb", "muon", "soap"}) {
    refused([&](RunConfig& run) { run.train.optimizer = optimizer; },
            fmt::format("train.optimizer = \"{}\", which updates each matrix as a whole,", optimizer));
  }
  refused([](RunConfig& run) { run.train.clip_block = 0.1; }, "train.clip_block = 0.1");
  refused([](RunConfig& run) { run.train.cautious = true; }, "train.cautious");
  refused([](RunConfig& run) { run.train.parameters = "bf16"; }, "train.parameters = \"bf16\"");
  refused([](RunConfig& run) { run.train.trouble.on_spike = "rollback"; }, "the policy `rollback` of [train.trouble]");
  refused([](RunConfig& run) { run.watch.every = 5; }, "[watch]");
  refused([](RunConfig& run) { run.model.lora.rank = 2; }, "model.lora.rank = 2");
  refused([](RunConfig& run) { run.model.attention = "delta"; }, "model.attention = \"delta\"");
  refused([](RunConfig& run) { run.model.positions = "alibi"; }, "model.positions = \"alibi\"");
  refused([](RunConfig& run) { run.model.positions = "t5"; }, "model.positions = \"t5\"");
  refused([](RunConfig& run) { run.model.residual = "ngpt"; }, "model.residual = \"ngpt\"");
  refused([](RunConfig& run) { run.model.qk_norm = "batchnorm"; }, "model.qk_norm = \"batchnorm\"");
}

}  // namespace
}  // namespace plumb
