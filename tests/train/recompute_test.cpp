// Steps whose layers are computed again in the backward pass are those that keep all activations.
#include <gtest/gtest.h>

#include <functional>

#include "copy_task.h"
#include "plumb/data/batches.h"
#include "plumb/ops/memory.h"
#include "plumb/train/trainer.h"
#include "support/bfloat16.h"
#include "support/errors.h"
#include "support/ranks.h"

namespace plumb {
namespace {

struct RecomputedModel {
  std::string name;
  std::function<void(RunConfig&)> set;
  /// Otherwise only up to rounding: the streams of a scheme begin as one tensor, or layers share a parameter of which
  /// each uses several parts, so that the gradients of these are added in another order.
  bool exact = true;
};

void set_residual(RunConfig& run, const std::string& residual) { run.model.residual = residual; }

const std::vector<RecomputedModel> kRecomputedModels = {
    {"PostLn",
     [](RunConfig& run) {
       set_residual(run, "post-ln");
       run.model.share_embeddings = "all";
     }},
    {"Llama",
     [](RunConfig& run) {
       run.model.kind = "decoder";
       run.model.norm = "rmsnorm";
       run.model.attention_bias = "none";
       run.model.feed_forward_bias = false;
       run.model.activation = "swiglu";
       run.model.positions = "rotary";
       run.model.kv_heads = 2;
     }},
    {"Gopher",
     [](RunConfig& run) {
       run.model.kind = "decoder";
       run.model.norm = "rmsnorm";
       run.model.activation = "gelu";
       run.model.positions = "transformer-xl";
     }},
    {"ResiDual", [](RunConfig& run) { set_residual(run, "residual-dual"); }, false},
    {"HyperConnections", [](RunConfig& run) { set_residual(run, "hyper-connections"); }},
    {"AttnRes", [](RunConfig& run) { set_residual(run, "attnres"); }},
    {"Siamese", [](RunConfig& run) { set_residual(run, "siamesenorm"); }},
    {"Ngpt", [](RunConfig& run) { set_residual(run, "ngpt"); }},
    {"BatchNorm", [](RunConfig& run) { run.model.norm = "batchnorm"; }},
    {"T5", [](RunConfig& run) { run.model.positions = "t5"; }, false},
    {"ValueResidualInParallel",
     [](RunConfig& run) {
       run.model.kind = "decoder";
       run.model.value_residual = true;
       run.model.parallel = true;
       run.model.qk_norm = "rmsnorm";
     }},
    {"FastWeightsWithAdapters",
     [](RunConfig& run) {
       run.model.kind = "decoder";
       run.model.attention = "delta";
       run.model.lora.rank = 2;
     }},
    {"DropoutWithinLayers",
     [](RunConfig& run) {
       run.model.attention_dropout = 0.2;
       run.model.activation_dropout = 0.25;
     }},
    {"Bfloat16", [](RunConfig& run) { run.train.precision = "bf16"; }},
};

/// Steps of two ragged batches in micro-batches, with dropout and clipping.
class RecomputedSteps : public ::testing::TestWithParam<RecomputedModel>, protected test::CopyTaskFolder {
 protected:
  RecomputedSteps() {
    take_micro_batches();
    run_.model.feed_forward = 24;
    run_.model.encoder_layers = run_.model.decoder_layers = 3;
    run_.train.optimizer = "adamw";
    run_.train.learning_rate = 1e-3;
    run_.train.steps = 8;
    GetParam().set(run_);
    task_ = completed_task();
  }

  void SetUp() override {
    if (run_.train.precision == "bf16" && !test::has_bfloat16_products())
      GTEST_SKIP() << "this processor has no bfloat16 products";
  }

  struct Trained {
    Tensor parameters;
    std::vector<Tensor> buffers;
    std::vector<double> losses;
  };

  [[nodiscard]] Trained trained(bool recompute, at::ScalarType type, int64_t processes = 1) const {
    Trained found;
    test::as_ranks(processes, [&](const Group& group) {
      const std::unique_ptr<Model> model = make_model(run_.model, type);
      model->initialize(1);
      TrainConfig config = run_.train;
      config.recompute = recompute;
      Trainer trainer(*model, config, *task_);
      trainer.join(group);
      trainer.run();
      if (group.rank() > 0) return;
      found.parameters = model->parameters().flat().detach().clone();
      for (const Parameter& buffer : model->parameters().buffers()) found.buffers.push_back(buffer.value.clone());
      for (const TrainPoint& point : trainer.history()) found.losses.push_back(point.loss);
    });
    return found;
  }

  static void expect_same(const Trained& found, const Trained& wanted) {
    if (!GetParam().exact) {
      EXPECT_LT((found.parameters - wanted.parameters).abs().max().item<double>(), 1e-10);
      return;
    }
    EXPECT_TRUE(at::equal(found.parameters, wanted.parameters))
        << (found.parameters - wanted.parameters).abs().max().item<double>();
    ASSERT_EQ(found.buffers.size(), wanted.buffers.size());
    for (size_t i = 0; i < wanted.buffers.size(); ++i) EXPECT_TRUE(at::equal(found.buffers[i], wanted.buffers[i])) << i;
    EXPECT_EQ(found.losses, wanted.losses);
  }

  std::unique_ptr<Task> task_;
};

// In one process and in two, in the types of the kernels and of the operations that are their reference.
TEST_P(RecomputedSteps, AreThoseThatKeepAllActivations) {
  const bool one = run_.train.precision == "float32" && GetParam().exact;
  if (one) expect_same(trained(true, at::kDouble), trained(false, at::kDouble));
  const at::ScalarType type = GetParam().exact ? at::kFloat : at::kDouble;
  expect_same(trained(true, type, 2), trained(false, type, 2));
}

INSTANTIATE_TEST_SUITE_P(Of, RecomputedSteps, ::testing::ValuesIn(kRecomputedModels),
                         [](const auto& info) { return info.param.name; });

class Recomputation : public ::testing::Test, protected test::CopyTaskFolder {
 protected:
  Recomputation() {
    task_ = make_task({}, DataDirectory::open(run_.data), run_.model.kind);
    run_.train.recompute = true;
  }

  std::unique_ptr<Task> task_;
};

TEST_F(Recomputation, KeepsTheInputsOfLayersAlone) {
  run_.model.encoder_layers = run_.model.decoder_layers = 8;
  run_.model.d_model = 64;
  run_.model.feed_forward = 256;
  task_->complete(run_.model);
  const std::unique_ptr<Model> model = make_model(run_.model);
  model->initialize(1);
  const Batch batch = evaluation_batches(*task_->dataset("train"), 1024, 64).front();
  const auto held = [&](bool recompute) {
    ForwardContext context(0.1, 1, 1);
    if (recompute) context.recompute();
    const ops::HeldMemory memory(at::kCPU);
    const Tensor states = model->states(batch, context);
    return memory.bytes();
  };
  if (ops::memory_in_use() == 0) GTEST_SKIP() << "memory in use is unknown";
  static_cast<void>(held(false));  // what the first pass leaves behind
  EXPECT_LT(held(true), held(false) / 8);
  const ops::HeldMemory memory(at::kCPU);
  static_cast<void>(held(true));
  EXPECT_LT(memory.bytes(), held(true) / 8);  // the graph does not keep itself
}

// Measurements, which differentiate twice, do not recompute.
TEST_F(Recomputation, HasNoSecondDerivatives) {
  task_->complete(run_.model);
  const std::unique_ptr<Model> model = make_model(run_.model);
  model->initialize(1);
  const Batch batch = evaluation_batches(*task_->dataset("train"), 64, 8).front();
  ForwardContext context(0.1, 1, 1);
  context.recompute();
  const Loss loss = model->loss(batch, {0, std::nullopt, true}, context);
  EXPECT_EQ(test::message_of([&] { gradients({loss.value}, model->parameters().values(), {}, true); }),
            "second derivatives of recomputed layers are not available");
}

TEST_F(Recomputation, IsRefusedWhereAPassCannotBeRepeated) {
  const auto refusal = [&](const std::function<void(ModelConfig&)>& set) {
    ModelConfig config = run_.model;
    set(config);
    const auto task = make_task({}, DataDirectory::open(run_.data), config.kind);
    task->complete(config);
    const std::unique_ptr<Model> model = make_model(config);
    return test::message_of([&] { Trainer(*model, run_.train, *task); });
  };
  EXPECT_EQ(refusal([](ModelConfig& config) { config.norm = "powernorm"; }),
            "model.norm = \"powernorm\" cannot be combined with train.recompute: it reads the running averages that it "
            "updates");
  EXPECT_EQ(refusal([](ModelConfig& config) { config.kind = "awd-lstm"; }),
            "model.kind = \"awd-lstm\" cannot be combined with train.recompute: its layers keep their activations");
}

}  // namespace
}  // namespace plumb
