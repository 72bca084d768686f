// Whole runs whose processes divide a model: with the metrics of one process, going on in one, and what is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "disturbed_task.h"
#include "plumb/run/directory.h"
#include "run_in_processes.h"
#include "support/ranks.h"

namespace plumb {
namespace {

class MeshRun : public test::RunInProcesses {
 protected:
  static void in_layers(TrainConfig& train) { train.processes = train.tensor_parallel = 2; }
  static void in_stages(TrainConfig& train) { train.processes = train.pipeline_parallel = 2; }

  /// Uses a trainer of each of 2 stages.
  void as_stages(const Task& task, const std::function<void(Trainer&, Model&, const Group&)>& use) {
    in_stages(run_.train);
    run_.train.micro_batch_tokens = 24;
    test::as_ranks(2, [&](const Group& group) {
      const std::unique_ptr<Model> model = make_model(run_.model);
      model->initialize(1);
      Trainer trainer(*model, run_.train, task);
      use(trainer, *model, group);
    });
  }

  struct Refusal {
    std::function<void(RunConfig&)> set;
    std::string what;
    std::string hint;  // empty: any
  };
  /// Expects that each is refused in these words.
  void expect_refusals(const std::vector<Refusal>& refusals) const {
    for (const Refusal& each : refusals) {
      const Error error = refusal(each.set);
      EXPECT_EQ(std::string(error.what()), each.what);
      if (!each.hint.empty()) {
        EXPECT_EQ(error.hint(), each.hint) << each.what;
      }
    }
  }
};

TEST_F(MeshRun, OfDividedLayersIsThatOfOneProcessWithItsMetricsAndGoesOnInOne) {
  expect_goes_on_in_one(
      [](TrainConfig& train) {
        train.processes = 4;
        train.tensor_parallel = 2;
      },
      in_layers);
  EXPECT_EQ(load_run_config(folder_ / "run").train.tensor_parallel, 2);
}

TEST_F(MeshRun, InStagesIsThatOfOneProcessWithItsMetricsAndGoesOnInOne) {
  run_.train.micro_batch_tokens = 24;
  expect_goes_on_in_one(
      [](TrainConfig& train) {
        train.processes = 4;
        train.pipeline_parallel = 2;
      },
      [](TrainConfig& train) {
        in_stages(train);
        train.pipeline_schedule = "gpipe";
      });
  EXPECT_EQ(load_run_config(folder_ / "run").train.pipeline_parallel, 2);
}

TEST_F(MeshRun, InPiecesIsThatOfOneProcessWithItsMetricsAndGoesOnInOne) {
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

TEST_F(MeshRun, AStageThatFailsEndsTheOthersWithItsReason) {
  const std::unique_ptr<Task> inner = completed_task();
  const test::DisturbedTask task(*inner, [](const Tensor& loss, int64_t step, Model&) {  // in the last stage
    if (step == 3) throw Error("no paper in the printer");
    return loss;
  });
  as_stages(task, [](Trainer& trainer, Model&, const Group& group) {
    trainer.join(group);
    test::expect_error([&] { trainer.run(); }, "no paper in the printer");
    EXPECT_EQ(trainer.step(), 2);
  });
}

TEST_F(MeshRun, NamesWhereNumbersStopBeingFiniteInAnotherStage) {
  run_.train.steps = 2;
  as_stages(*completed_task(), [](Trainer& trainer, Model& model, const Group& group) {
    const char* damaged = "decoder.layers.0.linear1.bias";
    if (group.rank() == 0) model.parameters().at(damaged).value.detach()[0].fill_(NAN);
    trainer.join(group);
    EXPECT_EQ(trainer.run().outcome, RunOutcome::diverged);
    ASSERT_EQ(trainer.troubles().size(), 1);
    const Findings found = trainer.troubles().front().findings.value();  // the same in both
    EXPECT_EQ(found.parameter, damaged);
    EXPECT_EQ(found.forward.value().where, "decoder.layers.0.feed_forward.output");
    EXPECT_FALSE(found.again.has_value());
  });
}

TEST_F(MeshRun, RefusesLayersThatDoNotFitAndNamesTheNearest) {
  in_layers(run_.train);
  run_.model.d_model = 24;
  const std::string among_two = " cannot be divided among the 2 processes of train.tensor_parallel";
  expect_refusals({{[](RunConfig& run) {
                      run.train.processes = run.train.tensor_parallel = 4;
                      run.model.heads = 6;
                    },
                    "model.heads = 6 cannot be divided among the 4 processes of train.tensor_parallel",
                    "the nearest size that fits is 8; the nearest train.tensor_parallel that fits this model is 2"},
                   {[](RunConfig& run) { run.model.feed_forward = 33; }, "model.feed_forward = 33" + among_two, ""},
                   {[](RunConfig& run) { run.model.kv_heads = 1; }, "model.kv_heads = 1" + among_two, ""},
                   {[](RunConfig& run) { run.train.processes = 3; },
                    "train.processes = 3 is not a multiple of train.tensor_parallel = 2", ""}});
}

TEST_F(MeshRun, RefusesStagesThatDoNotFitAndNamesTheNearest) {
  in_stages(run_.train);
  run_.train.micro_batch_tokens = 24;
  expect_refusals({{[](RunConfig& run) { run.train.processes = run.train.pipeline_parallel = 4; },
                    "a model of 2 layers cannot be cut into 4 parts: train.pipeline_parallel = 4",
                    "the nearest train.pipeline_parallel that fits this model is 2"},
                   {[](RunConfig& run) { run.train.processes = 3; },
                    "train.processes = 3 is not a multiple of train.pipeline_parallel = 2", "start 4 processes"},
                   {[](RunConfig& run) {
                      run.train.processes = 6;
                      run.train.tensor_parallel = 2;
                    },
                    "train.processes = 6 is not a multiple of train.tensor_parallel · train.pipeline_parallel = 4", ""},
                   {[](RunConfig& run) {
                      run.train.pipeline_schedule = "gpipe";
                      run.train.pipeline_chunks = 2;
                    },
                    "train.pipeline_schedule = \"gpipe\" cannot be combined with train.pipeline_chunks = 2", ""},
                   {[](RunConfig& run) { run.train.shard = "gradients"; },
                    "train.pipeline_parallel = 2 cannot be combined with train.shard = \"gradients\"", ""},
                   {[](RunConfig& run) { run.train.shard = "parameters"; },
                    "train.pipeline_parallel = 2 cannot be combined with train.shard = \"parameters\"", ""}});
}

TEST_F(MeshRun, RefusesWhatCannotBeDivided) {
  using Set = std::function<void(RunConfig&)>;
  const std::vector<std::pair<Set, std::string>> both = {
      {[](RunConfig& run) { run.train.parameters = "bf16"; }, "train.parameters = \"bf16\""},
      {[](RunConfig& run) { run.train.trouble.on_spike = "rollback"; }, "the policy `rollback` of [train.trouble]"},
      {[](RunConfig& run) { run.watch.every = 5; }, "[watch]"}};
  const auto refused = [&](const std::string& key, const Set& set, const std::string& what) {
    const std::string message = refusal(set).what(), wanted = what + " cannot be combined with " + key;
    EXPECT_EQ(message.substr(0, wanted.size()), wanted);
  };
  const RunConfig whole = run_;
  in_layers(run_.train);
  const std::string layers = "train.tensor_parallel";
  for (const auto& [set, what] : both) refused(layers, set, what);
  refused(
      layers, [](RunConfig& run) { run.train.clip_block = 0.1; }, "train.clip_block = 0.1");
  refused(
      layers, [](RunConfig& run) { run.model.lora.rank = 2; }, "model.lora.rank = 2");
  refused(
      layers, [](RunConfig& run) { run.model.attention = "delta"; }, "model.attention = \"delta\"");
  refused(
      layers, [](RunConfig& run) { run.model.residual = "ngpt"; }, "model.residual = \"ngpt\"");
  refused(
      layers, [](RunConfig& run) { run.model.qk_norm = "batchnorm"; }, "model.qk_norm = \"batchnorm\"");

  run_ = whole;
  in_stages(run_.train);
  run_.train.micro_batch_tokens = 24;
  for (const auto& [set, what] : both) refused("train.pipeline_parallel", set, what);
  refused(
      "train.pipeline_parallel", [](RunConfig& run) { run.model.norm = "batchnorm"; },
      "a norm over the batch, whose averages are in 'encoder.layers.0.norm1.running_mean',");
}

TEST_F(MeshRun, RefusesWhatCannotBeCut) {
  const auto refused = [&](const char* shard, const std::function<void(RunConfig&)>& set, const std::string& what) {
    run_.train.processes = 2;
    run_.train.shard = shard;
    expect_refusals({{set, fmt::format("{} cannot be combined with train.shard = \"{}\"", what, shard), ""}});
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
