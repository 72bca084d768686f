// Processes that divide the layers of a model: everything is that of one process.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "divided_training.h"
#include "plumb/run/directory.h"
#include "run_in_processes.h"

namespace plumb {
namespace {

using test::Architecture;
using test::from_pieces;
using test::Shape;
using test::without_biases;

const std::vector<Architecture> kArchitectures = {
    test::kPostLn,
    test::kLlama,
    test::kGopher,
    test::kGated,
    {"Alibi",
     [](RunConfig& run) {
       without_biases(run);
       run.model.heads = 6;
       run.model.positions = "alibi";
     }},
    {"T5",
     [](RunConfig& run) {
       run.model.heads = 4;
       run.model.positions = "t5";
     }},
    {"HybridNorm",
     [](RunConfig& run) {
       run.model.residual = "hybridnorm";
       run.train.learning_rate = 0.01;  // with more, differences of rounding grow from step to step
     }},
};

class TensorParallel : public test::DividedTraining {};

TEST_P(TensorParallel, IsThatOfOneProcess) {
  const Trained one = trained({});
  for (const Shape& shape : {Shape{2, 2}, from_pieces({4, 2})}) expect_same(trained(shape), one, to_string(shape));
}

TEST_P(TensorParallel, ACheckpointDoesNotKnowTheMesh) {
  const Trained one = trained({});
  for (const auto& [first, second] : {std::pair<Shape, Shape>{{2, 2}, {1, 1}}, {{1, 1}, from_pieces({4, 2})}})
    expect_goes_on(first, second, one);
}

TEST_P(TensorParallel, WithAnAverageOfTheWeightsAndAStateThatIsSharedOut) {
  run_.train.average_decay = 0.6;
  run_.train.shard = "optimizer";
  const Trained one = trained({});
  expect_same(trained(from_pieces({4, 2})), one, "4 processes, 2 per layer");
  expect_goes_on({}, from_pieces({4, 2}), one);
}

INSTANTIATE_TEST_SUITE_P(Of, TensorParallel, ::testing::ValuesIn(kArchitectures),
                         [](const auto& info) { return info.param.name; });

class TensorParallelRun : public test::RunInProcesses {};

TEST_F(TensorParallelRun, IsThatOfOneProcessWithItsMetricsAndGoesOnInOne) {
  expect_goes_on_in_one(
      [](TrainConfig& train) {
        train.processes = 4;
        train.tensor_parallel = 2;
      },
      [](TrainConfig& train) { train.processes = train.tensor_parallel = 2; });
  EXPECT_EQ(load_run_config(folder_ / "run").train.tensor_parallel, 2);
}

TEST_F(TensorParallelRun, RefusesSizesThatDoNotFitAndNamesTheNearest) {
  run_.train.processes = run_.train.tensor_parallel = 2;
  run_.model.d_model = 24;
  const Error three_heads = refusal([](RunConfig& run) {
    run.train.processes = run.train.tensor_parallel = 4;
    run.model.heads = 6;
  });
  EXPECT_STREQ(three_heads.what(), "model.heads = 6 cannot be divided among the 4 processes of train.tensor_parallel");
  EXPECT_EQ(three_heads.hint(),
            "the nearest size that fits is 8; the nearest train.tensor_parallel that fits this model is 2");
  EXPECT_STREQ(refusal([](RunConfig& run) { run.model.feed_forward = 33; }).what(),
               "model.feed_forward = 33 cannot be divided among the 2 processes of train.tensor_parallel");
  EXPECT_STREQ(refusal([](RunConfig& run) { run.model.kv_heads = 1; }).what(),
               "model.kv_heads = 1 cannot be divided among the 2 processes of train.tensor_parallel");
  EXPECT_STREQ(refusal([](RunConfig& run) { run.train.processes = 3; }).what(),
               "train.processes = 3 is not a multiple of train.tensor_parallel = 2");
}

TEST_F(TensorParallelRun, RefusesWhatCannotBeDivided) {
  run_.train.processes = run_.train.tensor_parallel = 2;
  key_ = "train.tensor_parallel";
  expect_common_refusals();
  refused([](RunConfig& run) { run.train.clip_block = 0.1; }, "train.clip_block = 0.1");
  refused([](RunConfig& run) { run.model.lora.rank = 2; }, "model.lora.rank = 2");
  refused([](RunConfig& run) { run.model.attention = "delta"; }, "model.attention = \"delta\"");
  refused([](RunConfig& run) { run.model.residual = "ngpt"; }, "model.residual = \"ngpt\"");
  refused([](RunConfig& run) { run.model.qk_norm = "batchnorm"; }, "model.qk_norm = \"batchnorm\"");
}

}  // namespace
}  // namespace plumb
