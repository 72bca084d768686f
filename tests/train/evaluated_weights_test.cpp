// Evaluated weights that differ from the trained ones: the moving average, and an optimizer's average.
#include "plumb/train/evaluated_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "copy_run_fixture.h"
#include "disturbed_task.h"
#include "plumb/base/progress.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/run/directory.h"
#include "plumb/run/metrics_file.h"
#include "plumb/train/run_training.h"
#include "support/errors.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

class Evaluated : public test::CopyRun {
 protected:
  /// The weights after each step of a run without an average.
  [[nodiscard]] std::vector<Tensor> trained_weights() const { return trained_weights(*task_); }
  [[nodiscard]] std::vector<Tensor> trained_weights(const Task& task) const {
    std::vector<Tensor> weights;
    TrainConfig config = run_.train;
    config.average_decay = 0;
    EncoderDecoder trained = model();
    test::Moments moments;
    moments.stop = [&] {
      weights.push_back(trained.parameters().flat().clone());
      return false;
    };
    train(trained, config, task, moments);
    return weights;
  }

  /// The average of the last `count` of these weights with decay d, by its formula.
  [[nodiscard]] static Tensor average_of_last(size_t count, const std::vector<Tensor>& weights, double d) {
    Tensor sum = at::zeros_like(weights.back());
    for (size_t i = 0; i < count; ++i) sum += std::pow(d, static_cast<double>(i)) * weights[weights.size() - 1 - i];
    return (1 - d) * sum / (1 - std::pow(d, static_cast<double>(count)));
  }

  [[nodiscard]] double valid_nll(Model& evaluated) const {
    const auto set = task_->dataset("valid");
    return *task_->metrics(evaluate(*task_, evaluated, *set, run_.train.batch_tokens, 0, {})).get("nll");
  }

  [[nodiscard]] std::string refusal() const {
    return test::message_of([&] {
      EncoderDecoder refused = model();
      train(refused, run_.train, *task_);
    });
  }
};

double difference(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

TEST_F(Evaluated, AreTheMovingAverageOfTheWeightsAfterEachStep) {
  run_.train.average_decay = 0.8;
  run_.train.steps = 8;
  const std::vector<Tensor> w = trained_weights();
  ASSERT_GE(w.size(), 8U);
  EncoderDecoder averaged = model(), expected = model();
  const TrainResult result = train(averaged, run_.train, *task_);
  Tensor sum = at::zeros_like(w[0]);
  for (int s = 1; s <= 8; ++s) sum += std::pow(0.8, 8 - s) * w[static_cast<size_t>(s - 1)];
  const Tensor mean = 0.2 * sum / (1 - std::pow(0.8, 8));
  EXPECT_LT(difference(averaged.parameters().flat(), mean), 1e-14);
  expected.parameters().flat().copy_(mean);
  EXPECT_NEAR(*result.valid_nll(), valid_nll(expected), 1e-12);
  expected.parameters().flat().copy_(w.back());
  EXPECT_GT(std::abs(*result.valid_nll() - valid_nll(expected)), 1e-3);
}

TEST_F(Evaluated, CountASkippedStepWithTheWeightsThatItLeaves) {
  run_.train.average_decay = 0.8;
  run_.train.steps = 8;
  run_.train.trouble.on_nonfinite = "skip";
  const test::DisturbedTask task = test::nan_in_steps(*task_, {1, 2, 5});
  const std::vector<Tensor> w = trained_weights(task);
  ASSERT_EQ(w.size(), 8U);
  ASSERT_TRUE(at::equal(w[1], model().parameters().flat()));
  EncoderDecoder averaged = model();
  train(averaged, run_.train, task);
  EXPECT_LT(difference(averaged.parameters().flat(), average_of_last(8, w, 0.8)), 1e-14);

  // The same if the run is interrupted before its first update.
  EncoderDecoder before = model(), after = model();
  test::Moments moments;
  moments.stop = [] { return true; };
  Trainer first(before, run_.train, task);
  EXPECT_EQ(first.run(moments).steps, 1);
  fs::create_directories(folder_ / "saved");
  first.save(folder_ / "saved");
  Trainer second(after, run_.train, task);
  second.load(folder_ / "saved");
  EXPECT_EQ(second.run().steps, 8);
  EXPECT_TRUE(at::equal(after.parameters().flat(), averaged.parameters().flat()));
}

TEST_F(Evaluated, BeginAnewAfterARollbackToTheBeginning) {
  run_.train.average_decay = 0.8;
  run_.train.steps = 8;
  run_.train.checkpoint_every = 100;
  run_.train.trouble.on_nonfinite = "rollback";
  run_.train.trouble.pass_over = true;
  const test::DisturbedTask task = test::nan_in_steps(*task_, {3});
  const std::vector<Tensor> w = trained_weights(task);
  ASSERT_EQ(w.size(), 10U);  // steps 1 and 2, then 1 to 8, with 1 to 3 passed over
  EncoderDecoder averaged = model();
  train(averaged, run_.train, task);
  EXPECT_LT(difference(averaged.parameters().flat(), average_of_last(8, w, 0.8)), 1e-14);
}

TEST_F(Evaluated, LeaveTrainingAsItIs) {
  run_.train.average_decay = 0.9;
  run_.train.validate_every = 2;
  const std::vector<Tensor> w = trained_weights();
  std::vector<Tensor> found;
  EncoderDecoder averaged = model();
  test::Moments moments;
  moments.stop = [&] {
    found.push_back(averaged.parameters().flat().clone());
    return false;
  };
  train(averaged, run_.train, *task_, moments);
  ASSERT_EQ(found.size(), w.size());
  for (size_t i = 0; i < w.size(); ++i) EXPECT_TRUE(at::equal(found[i], w[i])) << i;
}

TEST_F(Evaluated, SatisfyTheConstraintsOfTheModel) {
  run_.model.residual = "ngpt";
  run_.model.share_embeddings = "none";
  run_.train.average_decay = 0.9;
  EncoderDecoder averaged = model();
  train(averaged, run_.train, *task_);
  const Tensor rows = averaged.parameters().at("tgt_embed.weight").value.detach().square().sum(1).sqrt();
  EXPECT_LT((rows - 1).abs().max().item<double>(), 1e-14);
}

TEST_F(Evaluated, AreInTheCheckpointsAndTheTrainedOnesBesideThem) {
  for (const char* optimizer : {"adam", "schedule-free-adamw"}) {
    SCOPED_TRACE(optimizer);
    run_.train.optimizer = optimizer;
    run_.train.average_decay = run_.train.optimizer == "adam" ? 0.9 : 0;
    const fs::path out = folder_ / optimizer;
    const TrainResult result = run_training(run_, out);
    EXPECT_EQ(valid_nll(*load_model(out)), *result.valid_nll());
    EXPECT_EQ(valid_nll(*load_model(out, out / "best")), result.best->value);
    const NamedTensors evaluated = load_safetensors(latest_checkpoint(out) / "model.safetensors");
    const NamedTensors trained = load_safetensors(latest_checkpoint(out) / "trained.safetensors");
    ASSERT_EQ(evaluated.size(), trained.size());
    EXPECT_FALSE(at::equal(evaluated[0].second, trained[0].second));
  }
  run_.train.optimizer = "adam";
  run_training(run_, folder_ / "without");
  EXPECT_FALSE(fs::exists(latest_checkpoint(folder_ / "without") / "trained.safetensors"));
}

TEST_F(Evaluated, GoOnInMemoryAfterTheyWereShown) {
  run_.train.average_decay = 0.9;
  EncoderDecoder whole = model(), halves = model();
  train(whole, run_.train, *task_);
  Trainer trainer(halves, run_.train, *task_);
  EXPECT_EQ(trainer.run(test::stop_after(7)).outcome, RunOutcome::stopped);  // leaves the average in the model
  EXPECT_EQ(trainer.run().outcome, RunOutcome::finished);
  EXPECT_TRUE(at::equal(whole.parameters().flat(), halves.parameters().flat()));
  fs::create_directories(folder_ / "saved");
  trainer.save(folder_ / "saved");  // while the average is shown
  EXPECT_TRUE(at::equal(load_safetensors(folder_ / "saved" / "model.safetensors")[0].second,
                        halves.parameters().values()[0].detach()));
  EXPECT_FALSE(at::equal(load_safetensors(folder_ / "saved" / "trained.safetensors")[0].second,
                         halves.parameters().values()[0].detach()));
}

// Reruns the trigger algorithm on the validations that the run reports.
TEST_F(Evaluated, NtAsgdIsToldOfEveryValidation) {
  run_.train.optimizer = "nt-asgd";
  Config::from_string(R"([train]
schedule = "constant"
learning_rate = 2.0
clip_norm = 1.0
steps = 80
validate_every = 2
divergence_factor = 0.0
[train.nt-asgd]
nonmonotone_interval = 1
)",
                      "test")
      .read("train", run_.train);
  const TrainResult result = run_training(run_, folder_ / "run");
  std::vector<double> logs;
  int64_t trigger = 0;
  for (const TrainPoint& point : result.history) {
    const auto value = point.metrics.get("valid_nll");
    if (!value) continue;
    const auto t = std::ssize(logs);
    if (trigger == 0 && t > 1 && *value > *std::min_element(logs.begin(), logs.end() - 1)) trigger = point.step;
    logs.push_back(*value);
  }
  EXPECT_EQ(logs.size(), 40U);
  EXPECT_GT(trigger, 0);  // at this high a rate, the loss fluctuates
  const fs::path last = latest_checkpoint(folder_ / "run");
  for (const auto& [name, tensor] : load_safetensors(last / "optimizer.safetensors")) {
    if (name != "step") continue;
    EXPECT_TRUE(tensor.eq(trigger > 0 ? 80 - trigger + 1 : 0).all().item<bool>());
  }
}

TEST_F(Evaluated, OnlyOneAverageAndNoConstraints) {
  run_.train.optimizer = "schedule-free-adamw";
  run_.train.average_decay = 0.5;
  EXPECT_EQ(refusal(), "train.average_decay = 0.5 cannot be combined with an optimizer that averages the weights");
  run_.train.average_decay = 0;
  run_.train.cautious = true;
  EXPECT_EQ(refusal(), "train.cautious cannot be combined with an optimizer that averages the weights");
  run_.train.cautious = false;
  run_.model.residual = "ngpt";
  run_.model.share_embeddings = "none";
  EXPECT_EQ(
      refusal(),
      "model.residual = \"ngpt\" changes the weights after every step, which cannot be combined with an optimizer that "
      "averages them");
  run_.train.optimizer = "adam";
  run_.train.average_decay = 1;
  EXPECT_EQ(refusal(), "train.average_decay = 1 must lie in [0, 1)");
}

}  // namespace
}  // namespace plumb
