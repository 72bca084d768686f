// Training in processes that divide a model, by layers or within them, and in one: everything must be the same.
// division_test.cpp compares one process with an independent loop.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "copy_task.h"
#include "plumb/plan/mesh_plan.h"
#include "plumb/run/snapshot.h"
#include "plumb/train/trainer.h"
#include "support/architectures.h"
#include "support/paths.h"
#include "support/ranks.h"

namespace plumb::test {

struct Shape {
  int64_t processes = 1;
  int64_t tensor = 1;
  int64_t pipeline = 1;
  std::string schedule = "1f1b";
  int64_t chunks = 1;
  std::string shard = "none";
  bool recompute = false;
  bool begins_in_pieces = false;  // no process ever holds the whole model
};

/// The same, beginning as a new run of `plumb train` does.
inline Shape from_pieces(Shape shape) {
  shape.begins_in_pieces = true;
  return shape;
}

inline std::string to_string(const Shape& shape) {
  return fmt::format("{} processes, {} per layer, {} stages of {} parts, {}, shard {}{}{}", shape.processes,
                     shape.tensor, shape.pipeline, shape.chunks, shape.schedule, shape.shard,
                     shape.recompute ? ", recomputed" : "", shape.begins_in_pieces ? ", from pieces" : "");
}

/// Steps of two ragged batches in micro-batches, with dropout, clipping and validation.
class DividedTraining : public ::testing::Test, protected CopyTaskFolder {
 protected:
  explicit DividedTraining(const Architecture& architecture) {
    take_micro_batches();
    run_.model.d_model = 12;
    run_.model.feed_forward = 20;
    run_.model.encoder_layers = run_.model.decoder_layers = 2;
    run_.train.optimizer = "sgd";
    run_.train.learning_rate = 0.05;
    run_.train.steps = 8;  // the second epoch has begun
    architecture.set(run_);
    task_ = completed_task();
  }

  struct Trained {
    std::map<std::string, Tensor> tensors;  // of all files of a checkpoint
    Tensor parameters;                      // of the model of rank 0, after the run
    std::vector<TrainPoint> history;
  };

  static constexpr int64_t kEnd = -1;

  /// Trains from the checkpoint `before`, or from the start if it is empty, to this step.
  [[nodiscard]] Trained trained(const Shape& shape, int64_t until = kEnd, const std::filesystem::path& before = {},
                                const std::filesystem::path& after = {}) const {
    Trained found;
    const std::vector<plan::RankKind> kinds = planned(shape);
    as_ranks(shape.processes, [&](const Group& group) {
      std::unique_ptr<Model> model;
      {
        const WithoutMemory none(shape.begins_in_pieces);
        model = make_model(run_.model, at::kDouble);
      }
      if (!shape.begins_in_pieces) model->initialize(1 + static_cast<uint64_t>(group.rank()));
      TrainConfig config = run_.train;
      config.seed = 1;
      config.processes = shape.processes;
      config.tensor_parallel = shape.tensor;
      config.pipeline_parallel = shape.pipeline;
      config.pipeline_schedule = shape.schedule;
      config.pipeline_chunks = shape.chunks;
      if (shape.shard != "none") config.shard = shape.shard;
      config.recompute = config.recompute || shape.recompute;
      Trainer trainer(*model, config, *task_);
      const int64_t whole = model->parameters().count();
      if (group.rank() == 0 && !before.empty()) trainer.load(before);
      if (shape.begins_in_pieces) {
        for (const Parameter& parameter : model->parameters().all())
          EXPECT_EQ(parameter.value.storage().nbytes(), 0) << parameter.name;
      }
      trainer.join(group);
      if (shape.tensor * shape.pipeline > 1) {
        EXPECT_LT(model->parameters().count(), whole);
        if (shape.chunks == 1) expect_planned(*model, kinds, group.rank() / shape.tensor % shape.pipeline);
      }
      if (shape.shard == "parameters") {
        EXPECT_EQ(model->parameters().flat().numel(), 0);
        for (const Parameter& parameter : model->parameters().all())
          EXPECT_EQ(parameter.value.storage().nbytes(), 0) << parameter.name;
      }
      Moments moments;
      moments.stop = [&] { return trainer.step() == until; };
      trainer.run(moments, {.spills_to = folder_.path()});
      trainer.make_whole();
      if (group.rank() > 0) return;
      const Snapshot snapshot = trainer.snapshot();
      for (const Snapshot::File& file : snapshot.files) {
        for (const auto& [name, tensor] : file.tensors) found.tensors[file.name + " " + name] = tensor.clone();
      }
      found.parameters = model->parameters().flat().detach().clone();
      found.history = trainer.history();
      if (!after.empty()) write_snapshot(snapshot, after);
    });
    return found;
  }

  /// What `plumb train --dry-run` says of the processes.
  [[nodiscard]] std::vector<plan::RankKind> planned(const Shape& shape) const {
    if (shape.tensor * shape.pipeline == 1) return {};
    return plan::rank_kinds(run_.model, {.sequence = 4, .batch_tokens = 1024},
                            {.data = shape.processes / (shape.tensor * shape.pipeline),
                             .tensor = shape.tensor,
                             .pipeline = shape.pipeline});
  }
  static void expect_planned(const Model& model, const std::vector<plan::RankKind>& kinds, int64_t stage) {
    for (const plan::RankKind& kind : kinds) {
      if (stage < kind.first_stage || stage > kind.last_stage) continue;
      EXPECT_EQ(kind.parameters, model.parameters().count()) << stage;
      int64_t tensors = 0, there = 0;
      for (const plan::HeldParameter& held : kind.held) tensors += held.count;
      for (const Parameter& parameter : model.parameters().all()) there += parameter.value.numel() > 0 ? 1 : 0;
      EXPECT_EQ(tensors, there) << stage;
    }
  }

  static void expect_same(const Trained& found, const Trained& wanted, const std::string& where) {
    ASSERT_EQ(found.tensors.size(), wanted.tensors.size()) << where;
    for (const auto& [name, tensor] : wanted.tensors) {
      ASSERT_TRUE(found.tensors.contains(name)) << where << ": " << name;
      ASSERT_EQ(found.tensors.at(name).sizes(), tensor.sizes()) << where << ": " << name;
      const Tensor& other = found.tensors.at(name);
      const Tensor same = other.eq(tensor).logical_or(other.isnan().logical_and(tensor.isnan()));  // also ∞
      EXPECT_LT((other - tensor).masked_fill(same, 0).abs().max().item<double>(), 1e-10) << where << ": " << name;
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

  std::unique_ptr<Task> task_;
};

}  // namespace plumb::test
