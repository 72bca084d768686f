// Processes that keep pieces of the optimizer's state, the gradients and the parameters: everything is that of one
// process, which division_test.cpp compares with an independent loop.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>

#include "copy_task.h"
#include "plumb/run/directory.h"
#include "plumb/run/snapshot.h"
#include "plumb/train/run_training.h"
#include "plumb/train/trainer.h"
#include "support/errors.h"
#include "support/paths.h"
#include "support/ranks.h"

namespace plumb {
namespace {

struct ShardedShape {
  int64_t processes = 1;
  std::string shard = "none";
  bool recompute = false;
  int64_t tensor = 1;
};

std::string to_text(const ShardedShape& shape) {
  return fmt::format("{} processes, shard {}, {} per layer{}", shape.processes, shape.shard, shape.tensor,
                     shape.recompute ? ", recomputed" : "");
}

struct ShardedModel {
  std::string name;
  std::function<void(RunConfig&)> set;
};

/// Without biases, whose gradients may be 0 but for rounding, which Adam enlarges.
void without_shifts(RunConfig& run) {
  run.model.kind = "decoder";
  run.model.norm = "rmsnorm";
  run.model.attention_bias = "none";
  run.model.feed_forward_bias = false;
  run.train.optimizer = "adamw";
  run.train.learning_rate = 1e-3;
  run.train.weight_decay = 0.1;
}

const std::vector<ShardedModel> kShardedModels = {
    {"PostLn",
     [](RunConfig& run) {
       run.model.residual = "post-ln";
       run.model.share_embeddings = "all";
     }},
    {"Llama",
     [](RunConfig& run) {
       without_shifts(run);
       run.model.activation = "swiglu";
       run.model.positions = "rotary";
       run.model.kv_heads = 2;
     }},
    {"Gopher",
     [](RunConfig& run) {
       without_shifts(run);
       run.model.activation = "gelu";
       run.model.positions = "transformer-xl";
       run.model.head_size = 5;
     }},
    {"ResiDual", [](RunConfig& run) { run.model.residual = "residual-dual"; }},
    {"ValueResidualInParallel",
     [](RunConfig& run) {
       without_shifts(run);
       run.model.value_residual = true;
       run.model.parallel = true;
     }},
    {"HyperConnections", [](RunConfig& run) { run.model.residual = "hyper-connections"; }},
};

/// Steps of two ragged batches in micro-batches, with dropout, clipping and validation.
class ShardedSteps : public ::testing::TestWithParam<ShardedModel> {
 protected:
  ShardedSteps() : run_(test::copy_run(folder_ / "data")) {
    test::make_copy_task(folder_ / "data");
    run_.model.dropout = 0.3;
    run_.model.d_model = 12;
    run_.model.heads = 4;
    run_.model.feed_forward = 21;  // not a multiple of the processes
    run_.model.encoder_layers = run_.model.decoder_layers = 2;
    run_.train.optimizer = "sgd";
    run_.train.schedule = "constant";
    run_.train.learning_rate = 0.05;
    run_.train.clip_norm = 0.5;
    run_.train.accumulate = 2;
    run_.train.micro_batch_tokens = 24;
    run_.train.steps = 12;
    run_.train.log_every = 1;
    run_.train.score_every = -1;
    GetParam().set(run_);
    task_ = make_task({}, DataDirectory::open(run_.data), run_.model.kind);
    task_->complete(run_.model);
  }

  struct Trained {
    std::map<std::string, Tensor> tensors;  // of all files of a checkpoint
    Tensor parameters;                      // of the model, after the run
    std::vector<TrainPoint> history;
    std::vector<TroubleRecord> troubles;
  };

  /// Trains from the checkpoint `before`, or from the start if it is empty, to this step.
  [[nodiscard]] Trained trained(const ShardedShape& shape, int64_t until = 12, const std::filesystem::path& before = {},
                                const std::filesystem::path& after = {}) const {
    Trained found;
    test::as_ranks(shape.processes, [&](const Group& group) {
      const std::unique_ptr<Model> model = make_model(run_.model, at::kDouble);
      model->initialize(1 + static_cast<uint64_t>(group.rank()));
      TrainConfig config = run_.train;
      config.processes = shape.processes;
      config.tensor_parallel = shape.tensor;
      config.shard = shape.shard;
      config.recompute = shape.recompute;
      Trainer trainer(*model, config, *task_);
      if (group.rank() == 0 && !before.empty()) trainer.load(before);
      trainer.join(group);
      if (shape.shard == "parameters") {
        EXPECT_EQ(model->parameters().flat().numel(), 0);
        for (const Parameter& parameter : model->parameters().all())
          EXPECT_EQ(parameter.value.storage().nbytes(), 0) << parameter.name;
      }
      TrainHooks hooks;
      hooks.stop = [&] { return trainer.step() == until; };
      trainer.run(hooks);
      if (group.rank() > 0) return;
      const Snapshot snapshot = trainer.snapshot();
      for (const Snapshot::File& file : snapshot.files) {
        for (const auto& [name, tensor] : file.tensors) found.tensors[file.name + " " + name] = tensor.clone();
      }
      found.parameters = model->parameters().flat().detach().clone();
      found.history = trainer.history();
      found.troubles = trainer.troubles();
      if (!after.empty()) write_snapshot(snapshot, after);
    });
    return found;
  }

  static void expect_same(const Trained& found, const Trained& wanted, const std::string& where) {
    ASSERT_EQ(found.tensors.size(), wanted.tensors.size()) << where;
    for (const auto& [name, tensor] : wanted.tensors) {
      ASSERT_TRUE(found.tensors.contains(name)) << where << ": " << name;
      ASSERT_EQ(found.tensors.at(name).sizes(), tensor.sizes()) << where << ": " << name;
      EXPECT_LT((found.tensors.at(name) - tensor).abs().max().item<double>(), 1e-10) << where << ": " << name;
    }
    ASSERT_LE(found.history.size(), wanted.history.size()) << where;
    const size_t earlier = wanted.history.size() - found.history.size();  // not kept by a run that goes on
    for (size_t i = 0; i < found.history.size(); ++i) {
      const TrainPoint &one = found.history[i], &other = wanted.history[earlier + i];
      EXPECT_EQ(one.step, other.step) << where;
      EXPECT_NEAR(one.nll, other.nll, 1e-10) << where << ", step " << one.step;
      EXPECT_NEAR(one.gradient_norm.value(), other.gradient_norm.value(), 1e-10) << where << ", step " << one.step;
      ASSERT_EQ(one.metrics.get("valid_nll").has_value(), other.metrics.get("valid_nll").has_value());
      if (one.metrics.get("valid_nll")) {
        EXPECT_NEAR(*one.metrics.get("valid_nll"), *other.metrics.get("valid_nll"), 1e-10) << where;
      }
    }
  }

  test::TemporaryDirectory folder_;
  RunConfig run_;
  std::unique_ptr<Task> task_;
};

TEST_P(ShardedSteps, AreThoseOfOneProcess) {
  const Trained one = trained({});
  for (const ShardedShape& shape : {ShardedShape{2, "gradients"},
                                    {4, "gradients", true},
                                    {2, "parameters"},
                                    {2, "parameters", true},
                                    {4, "parameters"}}) {
    const Trained found = trained(shape);
    expect_same(found, one, to_text(shape));
    EXPECT_LT((found.parameters - one.parameters).abs().max().item<double>(), 1e-10) << to_text(shape);
  }
}

// With one micro-batch in a step and without clipping, all sums are in the same order, but for those of streams that
// begin as one tensor, whose gradients are added up by layers.
TEST_P(ShardedSteps, AreThoseOfWholeGradientsBitForBit) {
  run_.train.accumulate = 1;
  run_.train.micro_batch_tokens = 0;
  run_.train.clip_norm = 0;
  const Trained whole = trained({3, "none"});
  for (const ShardedShape& shape :
       {ShardedShape{3, "optimizer"}, {3, "gradients"}, {3, "parameters"}, {3, "parameters", true}}) {
    const Trained found = trained(shape);
    ASSERT_EQ(found.tensors.size(), whole.tensors.size());
    if (run_.model.residual == "residual-dual" && shape.shard == "parameters") {
      expect_same(found, whole, to_text(shape));
      continue;
    }
    for (const auto& [name, tensor] : whole.tensors)
      EXPECT_TRUE(at::equal(found.tensors.at(name), tensor)) << to_text(shape) << ": " << name;
  }
}

TEST_P(ShardedSteps, GoOnInAnotherForm) {
  const Trained one = trained({});
  const ShardedShape two{2, "parameters"}, three{3, "gradients"}, alone{};
  for (const auto& [first, second] : {std::pair(two, alone), {alone, two}, {three, two}, {two, three}}) {
    const auto checkpoint = folder_ / fmt::format("{}-{}", first.processes, second.processes);
    std::filesystem::create_directory(checkpoint);
    static_cast<void>(trained(first, 5, {}, checkpoint));
    expect_same(trained(second, 12, checkpoint), one, to_text(first) + ", then " + to_text(second));
  }
}

TEST_P(ShardedSteps, OfADividedModel) {
  run_.model.feed_forward = 20;
  const Trained one = trained({});
  for (const char* shard : {"gradients", "parameters"}) {
    const ShardedShape shape{4, shard, false, 2};
    expect_same(trained(shape), one, to_text(shape));
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ShardedSteps, ::testing::ValuesIn(kShardedModels),
                         [](const auto& info) { return info.param.name; });

class ShardedRun : public ::testing::Test {
 protected:
  ShardedRun() : run_(test::copy_run(folder_ / "data")) {
    ::setenv("PLUMB_PROGRAM", test::plumb_program().c_str(), 1);
    test::make_copy_task(folder_ / "data");
    run_.train.optimizer = "sgd";
    run_.train.learning_rate = 0.05;
  }
  void TearDown() override { ::unsetenv("PLUMB_PROGRAM"); }

  test::TemporaryDirectory folder_;
  RunConfig run_;
};

TEST_F(ShardedRun, IsThatOfOneProcessWithItsMetricsAndGoesOnInOne) {
  run_.model.dropout = 0.2;
  const TrainResult one = run_training(run_, folder_ / "one");
  run_.train.processes = 2;
  run_.train.shard = "parameters";
  run_.train.recompute = true;
  TrainHooks hooks;
  hooks.stop = [left = 9]() mutable { return --left == 0; };
  EXPECT_EQ(run_training(run_, folder_ / "run", hooks).outcome, RunOutcome::stopped);
  hooks.stop = [left = 6]() mutable { return --left == 0; };
  run_.train.processes = 1;
  run_.train.shard = "none";
  run_.train.recompute = false;
  EXPECT_EQ(run_training(run_, folder_ / "run", hooks).outcome, RunOutcome::stopped);
  run_.train.processes = 3;
  run_.train.shard = "gradients";
  const TrainResult last = run_training(run_, folder_ / "run");
  EXPECT_EQ(last.outcome, RunOutcome::finished);
  EXPECT_EQ(load_run_config(folder_ / "run").train.shard, "gradients");
  ASSERT_EQ(last.history.size(), one.history.size());
  for (size_t i = 0; i < one.history.size(); ++i) EXPECT_NEAR(last.history[i].nll, one.history[i].nll, 1e-4);
  ASSERT_TRUE(one.metrics.get("bleu"));
  EXPECT_NEAR(last.metrics.get("bleu").value(), *one.metrics.get("bleu"), 1e-3);
}

TEST_F(ShardedRun, RefusesWhatCannotBeCut) {
  const auto refused = [&](const char* shard, const std::function<void(RunConfig&)>& set, const std::string& what) {
    RunConfig run = run_;
    run.train.processes = 2;
    run.train.shard = shard;
    set(run);
    EXPECT_EQ(test::message_of([&] { run_training(run, folder_ / "refused"); }),
              fmt::format("{} cannot be combined with train.shard = \"{}\"", what, shard));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
  };
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
