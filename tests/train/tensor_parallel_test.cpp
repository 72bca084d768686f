// Processes that divide the layers of a model: everything is that of one process, which division_test.cpp compares with
// an independent loop.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>

#include "copy_task.h"
#include "plumb/base/error.h"
#include "plumb/run/directory.h"
#include "plumb/run/snapshot.h"
#include "plumb/train/run_training.h"
#include "plumb/train/trainer.h"
#include "support/errors.h"
#include "support/paths.h"
#include "support/ranks.h"

namespace plumb {
namespace {

struct Shape {
  int64_t processes = 1;
  int64_t tensor = 1;
};

struct Architecture {
  std::string name;
  std::function<void(RunConfig&)> set;
};

/// Matrices without biases, whose gradients are never 0 but for rounding, so that Adam can be compared too.
void without_biases(RunConfig& run) {
  run.model.kind = "decoder";
  run.model.norm = "rmsnorm";
  run.model.attention_bias = "none";
  run.model.feed_forward_bias = false;
  run.train.optimizer = "adamw";
  run.train.learning_rate = 1e-3;
  run.train.weight_decay = 0.1;
}

const std::vector<Architecture> kArchitectures = {
    {"PostLn",
     [](RunConfig& run) {
       run.model.residual = "post-ln";
       run.model.share_embeddings = "all";
     }},
    {"Llama",
     [](RunConfig& run) {
       without_biases(run);
       run.model.activation = "swiglu";
       run.model.positions = "rotary";
       run.model.kv_heads = 2;
     }},
    {"Gopher",
     [](RunConfig& run) {
       without_biases(run);
       run.model.activation = "gelu";
       run.model.positions = "transformer-xl";
       run.model.head_size = 5;
     }},
    {"GatedWithNormsOfHeads",
     [](RunConfig& run) {
       without_biases(run);
       run.model.attention_gate = true;
       run.model.qk_norm = "rmsnorm";
       run.model.value_residual = true;
       run.model.parallel = true;
       run.model.activation = "geglu";
     }},
    {"HybridNorm", [](RunConfig& run) { run.model.residual = "hybridnorm"; }},
};

/// Steps of two ragged batches in micro-batches, with dropout, clipping and validation.
class TensorParallel : public ::testing::TestWithParam<Architecture> {
 protected:
  TensorParallel() : run_(test::copy_run(folder_ / "data")) {
    test::make_copy_task(folder_ / "data");
    run_.model.dropout = 0.3;
    run_.model.d_model = 12;
    run_.model.heads = 4;
    run_.model.feed_forward = 20;
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
    std::vector<TrainPoint> history;
  };

  /// Trains from the checkpoint `before`, or from the start if it is empty, to this step.
  [[nodiscard]] Trained trained(const Shape& shape, int64_t until = 12, const std::filesystem::path& before = {},
                                const std::filesystem::path& after = {}) const {
    Trained found;
    test::as_ranks(shape.processes, [&](const Group& group) {
      const std::unique_ptr<Model> model = make_model(run_.model, at::kDouble);
      model->initialize(1 + static_cast<uint64_t>(group.rank()));
      TrainConfig config = run_.train;
      config.processes = shape.processes;
      config.tensor_parallel = shape.tensor;
      Trainer trainer(*model, config, *task_);
      const int64_t whole = model->parameters().count();
      if (group.rank() == 0 && !before.empty()) trainer.load(before);
      trainer.join(group);
      if (shape.tensor > 1) {
        EXPECT_LT(model->parameters().count(), whole);
      }
      TrainHooks hooks;
      hooks.stop = [&] { return trainer.step() == until; };
      trainer.run(hooks);
      if (group.rank() > 0) return;
      const Snapshot snapshot = trainer.snapshot();
      for (const Snapshot::File& file : snapshot.files) {
        for (const auto& [name, tensor] : file.tensors) found.tensors[file.name + " " + name] = tensor.clone();
      }
      found.history = trainer.history();
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
      EXPECT_NEAR(one.loss, other.loss, 1e-10) << where << ", step " << one.step;
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

TEST_P(TensorParallel, IsThatOfOneProcess) {
  const Trained one = trained({});
  for (const Shape& shape : {Shape{2, 2}, {4, 2}})
    expect_same(trained(shape), one, fmt::format("{} processes, {} per layer", shape.processes, shape.tensor));
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
