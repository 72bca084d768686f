// Processes that compute a model one after another, as the stages of a pipeline: everything is that of one process.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "disturbed_task.h"
#include "divided_training.h"
#include "plumb/run/directory.h"
#include "run_in_processes.h"

namespace plumb {
namespace {

using test::Architecture;
using test::from_pieces;
using test::Shape;
using test::without_biases;

/// The same decoder with four layers, a stage each.
Architecture of_four_layers(const Architecture& decoder) {
  return {decoder.name, [set = decoder.set](RunConfig& run) {
            set(run);
            run.model.decoder_layers = 4;
          }};
}

Architecture of_residual(const std::string& name, const std::string& residual) {
  return of_four_layers({name, [residual](RunConfig& run) {
                           without_biases(run);
                           run.model.residual = residual;
                         }});
}

const std::vector<Architecture> kArchitecturesInStages = {
    of_four_layers(test::kLlama),
    of_four_layers({"Gopher",
                    [](RunConfig& run) {
                      test::kGopher.set(run);
                      run.model.share_embeddings = "none";  // its output matrix is not the embedding
                    }}),
    of_residual("ResiDual", "residual-dual"),
    of_residual("HyperConnections", "hyper-connections"),
    of_four_layers(test::kGated),
    test::kPostLn,  // three of its stages have the same embedding
};

class PipelineParallel : public test::DividedTraining {};

TEST_P(PipelineParallel, IsThatOfOneProcess) {
  const Trained one = trained({});
  for (const Shape& shape : {Shape{2, 1, 2},
                             {4, 1, 4, "gpipe"},
                             from_pieces({4, 1, 4}),
                             from_pieces({2, 1, 2, "1f1b", 2}),
                             from_pieces({4, 2, 2})})
    expect_same(trained(shape), one, to_string(shape));
}

TEST_P(PipelineParallel, ACheckpointDoesNotKnowTheMesh) {
  const Trained one = trained({});
  for (const auto& [first, second] : {std::pair<Shape, Shape>{{2, 1, 2}, {1}},
                                      {{1}, from_pieces({4, 1, 4})},
                                      {from_pieces({4, 2, 2}), from_pieces({2, 1, 2, "1f1b", 2})}})
    expect_goes_on(first, second, one);
}

TEST_P(PipelineParallel, WithAnAverageOfTheWeightsAndAStateThatIsSharedOut) {
  run_.train.average_decay = 0.6;
  run_.train.shard = "optimizer";
  const Trained one = trained({});
  const Shape shape = from_pieces({4, 1, 2});
  expect_same(trained(shape), one, to_string(shape));
  expect_goes_on(shape, shape, one);
}

TEST_P(PipelineParallel, WithLayersThatAreRecomputed) {
  const Trained one = trained({});
  run_.train.recompute = true;
  for (const Shape& shape : {Shape{2, 1, 2}, {2, 1, 2, "1f1b", 2}, {4, 2, 2}})
    expect_same(trained(shape), one, to_string(shape));
}

INSTANTIATE_TEST_SUITE_P(Of, PipelineParallel, ::testing::ValuesIn(kArchitecturesInStages),
                         [](const auto& info) { return info.param.name; });

class PipelineParallelRun : public test::RunInProcesses {
 protected:
  PipelineParallelRun() { run_.train.micro_batch_tokens = 24; }

  /// Uses a trainer of each of 2 stages.
  void in_stages(const Task& task, const std::function<void(Trainer&, Model&, const Group&)>& use) {
    run_.train.pipeline_parallel = run_.train.processes = 2;
    test::as_ranks(2, [&](const Group& group) {
      const std::unique_ptr<Model> model = make_model(run_.model);
      model->initialize(1);
      Trainer trainer(*model, run_.train, task);
      use(trainer, *model, group);
    });
  }
};

TEST_F(PipelineParallelRun, IsThatOfOneProcessWithItsMetricsAndGoesOnInOne) {
  expect_goes_on_in_one(
      [](TrainConfig& train) {
        train.processes = 4;
        train.pipeline_parallel = 2;
      },
      [](TrainConfig& train) {
        train.processes = train.pipeline_parallel = 2;
        train.pipeline_schedule = "gpipe";
      });
  EXPECT_EQ(load_run_config(folder_ / "run").train.pipeline_parallel, 2);
}

TEST_F(PipelineParallelRun, AStageThatFailsEndsTheOthersWithItsReason) {
  const std::unique_ptr<Task> inner = completed_task();
  const test::DisturbedTask task(*inner, [](const Tensor& loss, int64_t step, Model&) {  // in the last stage
    if (step == 3) throw Error("no paper in the printer");
    return loss;
  });
  in_stages(task, [](Trainer& trainer, Model&, const Group& group) {
    trainer.join(group);
    test::expect_error([&] { trainer.run(); }, "no paper in the printer");
    EXPECT_EQ(trainer.step(), 2);
  });
}

TEST_F(PipelineParallelRun, NamesWhereNumbersStopBeingFiniteInAnotherStage) {
  run_.train.steps = 2;
  in_stages(*completed_task(), [](Trainer& trainer, Model& model, const Group& group) {
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

TEST_F(PipelineParallelRun, RefusesWhatDoesNotFitAndNamesTheNearest) {
  run_.train.processes = run_.train.pipeline_parallel = 2;
  const Error layers = refusal([](RunConfig& run) { run.train.processes = run.train.pipeline_parallel = 4; });
  EXPECT_STREQ(layers.what(), "a model of 2 layers cannot be cut into 4 parts: train.pipeline_parallel = 4");
  EXPECT_EQ(layers.hint(), "the nearest train.pipeline_parallel that fits this model is 2");
  const Error processes = refusal([](RunConfig& run) { run.train.processes = 3; });
  EXPECT_STREQ(processes.what(), "train.processes = 3 is not a multiple of train.pipeline_parallel = 2");
  EXPECT_EQ(processes.hint(), "start 4 processes");
  EXPECT_STREQ(refusal([](RunConfig& run) {
                 run.train.processes = 6;
                 run.train.tensor_parallel = 2;
               }).what(),
               "train.processes = 6 is not a multiple of train.tensor_parallel · train.pipeline_parallel = 4");
  EXPECT_STREQ(refusal([](RunConfig& run) {
                 run.train.pipeline_schedule = "gpipe";
                 run.train.pipeline_chunks = 2;
               }).what(),
               "train.pipeline_schedule = \"gpipe\" cannot be combined with train.pipeline_chunks = 2");
}

TEST_F(PipelineParallelRun, RefusesWhatCannotBeDivided) {
  run_.train.processes = run_.train.pipeline_parallel = 2;
  key_ = "train.pipeline_parallel";
  expect_common_refusals();
  for (const char* shard : {"gradients", "parameters"}) {
    EXPECT_EQ(std::string(refusal([&](RunConfig& run) { run.train.shard = shard; }).what()),
              fmt::format("train.pipeline_parallel = 2 cannot be combined with train.shard = \"{}\"", shard));
  }
  refused([](RunConfig& run) { run.model.norm = "batchnorm"; },
          "a norm over the batch, whose averages are in 'encoder.layers.0.norm1.running_mean',");
}

}  // namespace
}  // namespace plumb
