// Processes that keep pieces of the optimizer's state, the gradients and the parameters: everything is that of one
// process, which division_test.cpp compares with an independent loop.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "divided_training.h"
#include "plumb/run/directory.h"
#include "run_in_processes.h"

namespace plumb {
namespace {

using test::Architecture;
using test::from_pieces;
using test::Shape;
using test::without_biases;

Shape in_pieces(int64_t processes, const std::string& shard, bool recompute = false, int64_t tensor = 1) {
  return {.processes = processes, .tensor = tensor, .shard = shard, .recompute = recompute};
}

const std::vector<Architecture> kShardedModels = {
    test::kPostLn,
    test::kLlama,
    test::kGopher,
    {"ResiDual", [](RunConfig& run) { run.model.residual = "residual-dual"; }},
    {"ValueResidualInParallel",
     [](RunConfig& run) {
       without_biases(run);
       run.model.value_residual = true;
       run.model.parallel = true;
     }},
    {"HyperConnections", [](RunConfig& run) { run.model.residual = "hyper-connections"; }},
};

class ShardedSteps : public test::DividedTraining {
 protected:
  ShardedSteps() { run_.model.feed_forward = 21; }  // not a multiple of the processes
};

TEST_P(ShardedSteps, AreThoseOfOneProcess) {
  const Trained one = trained({});
  for (const Shape& shape : {in_pieces(2, "gradients"), in_pieces(4, "gradients", true), in_pieces(2, "parameters"),
                             in_pieces(2, "parameters", true), in_pieces(4, "parameters"),
                             from_pieces(in_pieces(2, "parameters")), from_pieces(in_pieces(4, "parameters", true))}) {
    const Trained found = trained(shape);
    expect_same(found, one, to_string(shape));
    EXPECT_LT((found.parameters - one.parameters).abs().max().item<double>(), 1e-10) << to_string(shape);
  }
}

// With one micro-batch in a step and without clipping, all sums are in the same order, but for those of streams that
// begin as one tensor, whose gradients are added up by layers.
TEST_P(ShardedSteps, AreThoseOfWholeGradientsBitForBit) {
  run_.train.accumulate = 1;
  run_.train.micro_batch_tokens = 0;
  run_.train.clip_norm = 0;
  const Trained whole = trained(in_pieces(3, "none"));
  for (const Shape& shape : {in_pieces(3, "optimizer"), in_pieces(3, "gradients"), in_pieces(3, "parameters"),
                             in_pieces(3, "parameters", true), from_pieces(in_pieces(3, "parameters"))}) {
    const Trained found = trained(shape);
    ASSERT_EQ(found.tensors.size(), whole.tensors.size());
    if (run_.model.residual == "residual-dual" && shape.shard == "parameters") {
      expect_same(found, whole, to_string(shape));
      continue;
    }
    for (const auto& [name, tensor] : whole.tensors)
      EXPECT_TRUE(at::equal(found.tensors.at(name), tensor)) << to_string(shape) << ": " << name;
  }
}

TEST_P(ShardedSteps, GoOnInAnotherForm) {
  const Trained one = trained({});
  const Shape two = in_pieces(2, "parameters"), three = in_pieces(3, "gradients"), alone;
  const Shape begun = from_pieces(in_pieces(3, "parameters"));
  for (const auto& [first, second] :
       {std::pair(two, alone), {alone, two}, {three, two}, {two, three}, {begun, alone}, {alone, begun}})
    expect_goes_on(first, second, one);
}

TEST_P(ShardedSteps, OfADividedModel) {
  run_.model.feed_forward = 20;
  const Trained one = trained({});
  for (const char* shard : {"gradients", "parameters"}) {
    const Shape shape = from_pieces(in_pieces(4, shard, false, 2));
    expect_same(trained(shape), one, to_string(shape));
    expect_goes_on({}, shape, one);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ShardedSteps, ::testing::ValuesIn(kShardedModels),
                         [](const auto& info) { return info.param.name; });

class ShardedRun : public test::RunInProcesses {};

TEST_F(ShardedRun, IsThatOfOneProcessWithItsMetricsAndGoesOnInOne) {
  expect_goes_on_in_one(
      [](TrainConfig& train) {
        train.processes = 2;
        train.shard = "parameters";
        train.recompute = true;
      },
      [](TrainConfig& train) {
        train.processes = 3;
        train.shard = "gradients";
      });
  EXPECT_EQ(load_run_config(folder_ / "run").train.shard, "gradients");
}

TEST_F(ShardedRun, RefusesWhatCannotBeCut) {
  const auto refused = [&](const char* shard, const std::function<void(RunConfig&)>& set, const std::string& what) {
    run_.train.processes = 2;
    run_.train.shard = shard;
    EXPECT_EQ(std::string(refusal(set).what()),
              fmt::format("{} cannot be combined with train.shard = \"{}\"", what, shard));
  };
  refused(
      "optimizer", [](RunConfig& run) { run.train.optimizer = "schedule-free-adamw"; },
      "train.optimizer = \"schedule-free-adamw\", which averages the weights,");
  for (const char* shard : {"gradients", "parameters"}) {
    for (const char* optimizer : {"adafactor", "lamb", "muon", "soap"}) {
      refused(
          shard, [&](RunConfig& run) { run.train.optimizer = optimizer; },
          fmt::format("train.optimizer = \"{}\", which updates each matrix as a whole,", optimizer));
    }
    refused(
        shard, [](RunConfig& run) { run.train.optimizer = "nt-asgd"; },
        "train.optimizer = \"nt-asgd\", which averages the weights,");
    refused(
        shard, [](RunConfig& run) { run.train.clip_block = 0.1; }, "train.clip_block = 0.1");
    refused(
        shard, [](RunConfig& run) { run.train.cautious = true; }, "train.cautious");
    refused(
        shard, [](RunConfig& run) { run.train.parameters = "bf16"; }, "train.parameters = \"bf16\"");
    refused(
        shard, [](RunConfig& run) { run.watch.every = 5; }, "[watch]");
  }
  refused(
      "parameters", [](RunConfig& run) { run.train.average_decay = 0.9; }, "train.average_decay = 0.9");
  refused(
      "parameters", [](RunConfig& run) { run.model.residual = "ngpt"; },
      "model.residual = \"ngpt\", which changes the weights after every step,");
}

}  // namespace
}  // namespace plumb
