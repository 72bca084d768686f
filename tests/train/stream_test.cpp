// Training on a stream: its steps against a plain computation, and exact resumption with the carried state.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "disturbed_task.h"
#include "moments.h"
#include "plumb/analysis/watch/critical_rate.h"
#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/model/awd_lstm.h"
#include "plumb/run/checkpoints.h"
#include "plumb/run/directory.h"
#include "plumb/run/snapshot.h"
#include "plumb/train/run_training.h"
#include "support/fast_directory.h"
#include "support/text_lines.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

class StreamTraining : public ::testing::Test {
 protected:
  StreamTraining() {
    test::prepare_lines(folder_ / "data",
                        test::in_turn(14, {"a big cat sees the dog", "the dog sees a cat", "the dog sees a cat"}),
                        {"the cat sees a dog", "a dog", "the big dog sees"}, 8);
    run_.data = (folder_ / "data").string();
    set(R"([model]
kind = "awd-lstm"
embedding_size = 6
hidden_size = 8
layers = 2
initialization = "lstm"
[task.language-modeling]
stream = 3
evaluation_rows = 2
bptt = 4
varied_bptt = false
[train]
optimizer = "sgd"
schedule = "constant"
learning_rate = 0.5
clip_norm = 0.25
label_smoothing = 0.0
steps = 20
log_every = 1
validate_every = 5
checkpoint_every = 4
)");
  }

  void set(const std::string& toml) {
    const Config config = Config::from_string(toml, "test");
    config.read("model", run_.model);
    config.read("train", run_.train);
    config.read("task", run_.task);
  }

  std::unique_ptr<Task> task() const {
    return make_task(run_.task, DataDirectory::open(folder_ / "data"), run_.model.kind);
  }

  /// Trains three steps beyond one epoch. Returns the steps per epoch.
  int64_t go_beyond_an_epoch() {
    const auto learned = task();
    const int64_t steps = (learned->dataset("train")->size() + 3) / 4;
    EXPECT_GT(steps, 4);
    run_.train.steps = steps + 3;
    return steps;
  }

  /// All tokens of the training text.
  static std::vector<int64_t> text_of(const Task& task) {
    const Split& split = task.data().split("train");
    std::vector<int64_t> all;
    for (int64_t i = 0; i < split.size(); ++i) {
      for (const int32_t id : split.target(i)) all.push_back(id);
    }
    return all;
  }

  test::FastDirectory folder_;
  RunConfig run_;
};

// SGD without momentum in float64, beyond the end of an epoch: each step reads the next columns, and gradients are
// truncated at its beginning. With segments of varied length, the learning rate is proportional to the length. Step 3
// is skipped, so step 4 begins with the state that step 2 left.
class StreamSteps : public StreamTraining, public ::testing::WithParamInterface<bool> {};

TEST_P(StreamSteps, AreThoseOfTheFormula) {
  const bool varied = GetParam();
  set(fmt::format("[task.language-modeling]\nvaried_bptt = {}\n", varied));
  set("[model.awd-lstm]\nembedding_dropout = 0.0\ninput_dropout = 0.0\nhidden_dropout = 0.0\noutput_dropout = 0.0\n"
      "weight_drop = 0.0\nactivation_penalty = 0.0\ntemporal_penalty = 0.0\n[train.sgd]\nmomentum = 0.0\n");
  go_beyond_an_epoch();
  const auto learned = task();
  learned->complete(run_.model);
  AwdLstm trained(run_.model, at::kDouble), expected(run_.model, at::kDouble);
  for (AwdLstm* each : {&trained, &expected}) each->initialize(1);
  run_.train.trouble.on_nonfinite = "skip";
  const TrainResult result = train(trained, run_.train, test::nan_in_steps(*learned, {3}));
  ASSERT_EQ(result.outcome, RunOutcome::finished);

  const std::vector<int64_t> all = text_of(*learned);
  const int64_t rows = 3, length = std::ssize(all) / rows, longer = std::ssize(all) % rows;
  const int64_t columns = length + (longer > 0 ? 1 : 0);
  std::vector<ops::LstmState> state;
  int64_t column = 0, epoch = 0, number = 0;
  for (int64_t step = 1; step <= run_.train.steps.in_steps(); ++step) {
    const int64_t length_of_step = varied ? segment_length({4, true}, 1, epoch, number) : 4;
    const int64_t columns_of_step = std::min(length_of_step, columns - column);
    const double rate = varied ? 0.5 * static_cast<double>(columns_of_step) / 4 : 0.5;
    std::vector<int64_t> read, labels, lengths;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t begin = row * length + std::min(row, longer), end = begin + length + (row < longer ? 1 : 0);
      const int64_t first = begin + column, last = std::min(first + columns_of_step, end);
      lengths.push_back(std::max<int64_t>(last - first, 0));
      for (int64_t t = first; t < last; ++t) {
        read.push_back(t == 0 ? learned->data().target_tokenizer().specials().bos : all[static_cast<size_t>(t - 1)]);
        labels.push_back(all[static_cast<size_t>(t)]);
      }
    }
    if (step != 3) {
      ForwardContext context;
      const AwdLstm::Result found = expected.run(read, Ragged(lengths), state, context);
      const Tensor log_p = at::log_softmax(expected.logits(found.hidden), 1);
      const Tensor loss = -log_p.gather(1, at::tensor(labels, at::kLong).unsqueeze(1)).mean();
      const Tensor gradient = joined(gradients({loss}, expected.parameters().values(), {}));
      expected.parameters().flat().sub_(gradient * (rate * std::min(1.0, 0.25 / gradient.norm().item<double>())));
      const TrainPoint& point = result.history.at(static_cast<size_t>(step) - 1);
      EXPECT_NEAR(point.loss, loss.item<double>(), 1e-12) << step;
      EXPECT_DOUBLE_EQ(point.learning_rate, rate) << step;
      state.clear();
      for (const ops::LstmState& last : found.last) state.push_back({last.hidden.detach(), last.cell.detach()});
    }
    column += columns_of_step;
    ++number;
    if (column < columns) continue;
    column = number = 0;
    ++epoch;
    state.clear();
  }
  EXPECT_LT((trained.parameters().flat() - expected.parameters().flat()).abs().max().item<double>(), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(FixedAndVaried, StreamSteps, ::testing::Bool());

TEST_F(StreamTraining, TheStateIsPartOfACheckpointWithinAnEpoch) {
  set("[train]\ncheckpoint_every = 1\n");
  const auto learned = task();
  learned->complete(run_.model);
  AwdLstm model(run_.model);
  model.initialize(1);
  const int64_t steps_of_epoch = go_beyond_an_epoch();
  test::Moments moments;
  int64_t seen = 0;
  moments.checkpoint = [&](const Trainer& trainer) {
    ++seen;
    const Snapshot snapshot = trainer.snapshot();
    const bool carried = std::any_of(snapshot.files.begin(), snapshot.files.end(),
                                     [](const Snapshot::File& file) { return file.name == "carried.safetensors"; });
    EXPECT_EQ(carried, trainer.step() % steps_of_epoch != 0) << trainer.step();
  };
  train(model, run_.train, *learned, moments);
  EXPECT_GE(seen, steps_of_epoch + 3);
}

TEST_F(StreamTraining, GoesOnWithinAnEpochToTheSameBytes) {
  const int64_t steps_of_epoch = go_beyond_an_epoch();
  const fs::path one = folder_ / "one", two = folder_ / "two";
  const TrainResult whole = run_training(run_, one);
  for (const int64_t steps : {int64_t{2}, steps_of_epoch - 3, int64_t{2}}) {
    EXPECT_EQ(run_training(run_, two, test::stop_after(steps)).outcome, RunOutcome::stopped);
  }
  const TrainResult resumed = run_training(run_, two);
  EXPECT_EQ(resumed.outcome, RunOutcome::finished);
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "carried.safetensors"}) {
    EXPECT_EQ(read_file(latest_checkpoint(one) / file), read_file(latest_checkpoint(two) / file)) << file;
  }
  ASSERT_EQ(resumed.history.size(), whole.history.size());
  for (size_t i = 0; i < whole.history.size(); ++i) {
    EXPECT_EQ(resumed.history[i].loss, whole.history[i].loss) << i;
    EXPECT_EQ(resumed.history[i].metrics.get("perplexity"), whole.history[i].metrics.get("perplexity")) << i;
  }
  fs::remove(latest_checkpoint(two) / "carried.safetensors");
  EXPECT_NE(damage_of(latest_checkpoint(two)), "");
}

// With practically the same rate, the run ends as if nothing had happened.
TEST_F(StreamTraining, ARollbackReturnsToTheStateOfItsCheckpoint) {
  set("[train]\nsteps = 10\n[train.trouble]\non_nonfinite = \"rollback\"\nrollback_rate = 0.999999999\n");
  const auto learned = task();
  learned->complete(run_.model);
  AwdLstm undisturbed(run_.model), disturbed(run_.model);
  for (AwdLstm* each : {&undisturbed, &disturbed}) each->initialize(1);
  train(undisturbed, run_.train, *learned);
  int left = 3;  // fails once, and in both repetitions of the inspection
  const test::DisturbedTask wrong(*learned, [&left](const Tensor& loss, int64_t step, Model&) {
    return step == 7 && left-- > 0 ? loss * NAN : loss;
  });
  const TrainResult result = train(disturbed, run_.train, wrong);
  EXPECT_EQ(result.outcome, RunOutcome::finished);
  ASSERT_EQ(result.troubles.size(), 1U);
  EXPECT_EQ(result.troubles[0].to, 4);
  EXPECT_TRUE(at::allclose(disturbed.parameters().flat(), undisturbed.parameters().flat(), 0, 1e-6));
}

// With segments of varied length, the watches get the actual learning rate of the step.
TEST_F(StreamTraining, AWatchHasTheRateOfTheStep) {
  set("[task.language-modeling]\nvaried_bptt = true\n[train]\nsteps = 6\nvalidate_every = 6\n");
  run_.watch.every = 1;
  run_.watch.what = {"critical_rate"};
  run_.watch.examples = 2;
  const TrainResult result = run_training(run_, folder_ / "run");
  std::map<int64_t, double> rates;
  for (const TrainPoint& point : result.history) rates[point.step] = point.learning_rate;
  std::set<double> seen;
  for (const WatchRecord& record : result.watched) {
    if (record.step == 0) continue;
    const double rate = record.find<CriticalRateMeasurement>()->learning_rate;
    EXPECT_DOUBLE_EQ(rate, rates.at(record.step));
    seen.insert(rate);
  }
  EXPECT_GT(seen.size(), 1U);
}

TEST_F(StreamTraining, IsNotDividedAmongProcessesOrInParts) {
  const auto learned = task();
  learned->complete(run_.model);
  AwdLstm model(run_.model);
  const auto refused = [&](const std::string& toml) {
    TrainConfig config = run_.train;
    Config::from_string("[train]\n" + toml, "test").read("train", config);
    EXPECT_THROW(Trainer(model, config, *learned), Error) << toml;
  };
  refused("processes = 2\n");
  refused("accumulate = 2\n");
  refused("micro_batch_tokens = 8\n");
  EXPECT_NO_THROW(Trainer(model, run_.train, *learned));
}

}  // namespace
}  // namespace plumb
