// Combinations of training features, each of which is tested on its own elsewhere.
#include <gtest/gtest.h>

#include "copy_run_fixture.h"
#include "disturbed_task.h"
#include "plumb/base/json_fields.h"
#include "plumb/base/progress.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/run/snapshot.h"
#include "plumb/train/trainer.h"
#include "plumb/trouble/spikes.h"
#include "support/errors.h"
#include "support/ranks.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

/// A task with a metric that only `score` computes: always 5, or never known.
class SlowlyScored final : public Task {
 public:
  explicit SlowlyScored(const Task& inner, bool known = true) : Task(inner.data()), inner_(inner), known_(known) {}
  [[nodiscard]] std::string name() const override { return "slowly scored"; }
  [[nodiscard]] std::unique_ptr<Dataset> dataset(const std::string& split) const override {
    return inner_.dataset(split);
  }
  [[nodiscard]] std::string model_kind() const override { return inner_.model_kind(); }
  void complete(ModelConfig& config) const override { inner_.complete(config); }
  [[nodiscard]] Metrics score(Model&, const std::string&) const override {
    Metrics metrics;
    if (known_) metrics.set("five", 5);
    return metrics;
  }
  [[nodiscard]] std::vector<MetricInfo> metric_infos() const override {
    std::vector<MetricInfo> infos = Task::metric_infos();
    infos.push_back({"five", "always 5"});
    return infos;
  }

 private:
  const Task& inner_;
  bool known_;
};

struct Count {
  static constexpr const char* kWatch = "counting";
  int64_t seen = 0;
};
void describe(Fields& field, Count& count) { field("seen", count.seen); }

/// Counts its measurements.
class Counting final : public Watch {
 public:
  [[nodiscard]] Described measure(const WatchedRun&) override { return Described(Count{++seen_}); }
  [[nodiscard]] NamedTensors state() const override { return {{"seen", at::full({1}, seen_, at::kLong)}}; }
  void load_state(const NamedTensors& tensors) override {
    seen_ = tensors.empty() ? 0 : tensors.front().second.item<int64_t>();
  }

 private:
  int64_t seen_ = 0;
};

class Combined : public test::CopyRun {};

TEST_F(Combined, SlowMetricsThatARunWasLeftWithoutAndAStateThatIsSharedOut) {
  run_.train.shard = "optimizer";
  run_.train.best_metric = "five";
  run_.train.score_every = 5;
  run_.train.steps = 10;
  const SlowlyScored task(*task_);
  const fs::path saved = folder_ / "saved";
  fs::create_directories(saved);
  test::as_ranks(2, [&](const Group& group) {
    EncoderDecoder learner = model();
    Trainer trainer(learner, run_.train, task);
    trainer.join(group);
    test::Moments moments;
    moments.stop = [left = 5]() mutable { return --left == 0; };
    if (group.rank() == 0) moments.checkpoint = [&](const Trainer& trained) { trained.save(saved); };
    EXPECT_EQ(trainer.run(moments).outcome, RunOutcome::stopped);
  });
  EXPECT_TRUE(read_json(saved / "state.json").contains("pending_point"));
  std::vector<int64_t> best;
  test::as_ranks(2, [&](const Group& group) {
    EncoderDecoder learner = model();
    Trainer trainer(learner, run_.train, task);
    if (group.rank() == 0) trainer.load(saved);
    trainer.join(group);
    test::Moments moments;
    if (group.rank() == 0) {
      moments.best = [&](const Trainer& trained) {
        EXPECT_FALSE(trained.snapshot().files.empty());
        best.push_back(trained.step());
      };
    }
    const TrainResult result = trainer.run(moments);
    EXPECT_EQ(result.outcome, RunOutcome::finished);
    EXPECT_EQ(result.best_step(), 5);
  });
  EXPECT_EQ(best, (std::vector<int64_t>{5}));
}

TEST_F(Combined, AMetricThatIsNotKnownIsNotZero) {
  run_.train.best_metric = "five";
  run_.train.score_every = 5;
  run_.train.steps = 10;
  const SlowlyScored task(*task_, false);
  EncoderDecoder learner = model();
  const TrainResult result = train(learner, run_.train, task);
  EXPECT_EQ(result.outcome, RunOutcome::finished);
  EXPECT_FALSE(result.metrics.get("five"));
  EXPECT_EQ(result.best_step(), 0);
}

TEST_F(Combined, ProcessesThatJoinTakeTheTrainedWeightsAndTheirAverage) {
  run_.train.average_decay = 0.5;
  run_.train.optimizer = "sgd";
  run_.train.learning_rate = 0.05;
  run_.train.steps = 10;
  EncoderDecoder whole = model(), begun = model();
  train(whole, run_.train, *task_);
  Trainer first(begun, run_.train, *task_);
  EXPECT_EQ(first.run(test::stop_after(5)).outcome, RunOutcome::stopped);
  fs::create_directories(folder_ / "saved");
  first.save(folder_ / "saved");
  test::as_ranks(2, [&](const Group& group) {
    EncoderDecoder learner = model();
    Trainer trainer(learner, run_.train, *task_);
    if (group.rank() == 0) trainer.load(folder_ / "saved");
    trainer.join(group);
    EXPECT_EQ(trainer.run().steps, 10);
    EXPECT_LT((learner.parameters().flat() - whole.parameters().flat()).abs().max().item<double>(), 1e-10);
  });
}

TEST_F(Combined, ACheckpointWithoutAPartIsRefused) {
  EncoderDecoder trained = model(), other = model();
  run_.train.steps = 1;
  Trainer first(trained, run_.train, *task_);
  first.run();
  Snapshot snapshot = first.snapshot();
  EXPECT_EQ(snapshot.find("watch.safetensors"), nullptr);
  std::erase_if(snapshot.files, [](const Snapshot::File& file) { return file.name == "optimizer.safetensors"; });
  fs::create_directories(folder_ / "saved");
  write_snapshot(snapshot, folder_ / "saved");
  Trainer second(other, run_.train, *task_);
  EXPECT_EQ(test::message_of([&] { second.load(folder_ / "saved"); }),
            (folder_ / "saved" / "optimizer.safetensors").string() + ": is missing");
}

TEST_F(Combined, ARollbackInMemoryTakesTheWatchesBack) {
  static const bool registered = watches().add(Count::kWatch, "", "", watch_factory<Counting>());
  EXPECT_TRUE(registered);
  WatchConfig watch;
  watch.every = 2;
  watch.what = {"counting"};
  run_.train.steps = 8;
  run_.train.checkpoint_every = 4;
  run_.train.trouble.on_nonfinite = "rollback";
  int left = 3;  // fails once, and in both repetitions of the inspection
  const test::DisturbedTask task(*task_, [&left](const Tensor& loss, int64_t step, Model&) {
    return step == 7 && left-- > 0 ? loss * NAN : loss;
  });
  EncoderDecoder learner = model();
  const TrainResult result = train(learner, run_.train, task, {}, watch);
  EXPECT_EQ(result.troubles.size(), 1U);
  std::vector<std::pair<int64_t, int64_t>> seen;
  for (const WatchRecord& record : result.watched) seen.emplace_back(record.step, record.find<Count>()->seen);
  EXPECT_EQ(seen, (std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {1, 2}, {2, 3}, {4, 4}, {6, 5}, {8, 6}}));
}

TEST_F(Combined, ARunThatGoesOnWithASuspectUpdateHasNothingToReturnTo) {
  run_.train.trouble.on_spike = "rollback";
  EncoderDecoder before = model(), after = model();
  Trainer first(before, run_.train, *task_);
  EXPECT_EQ(first.run(test::stop_after(5)).outcome, RunOutcome::stopped);
  Snapshot snapshot = first.snapshot();
  const Spike spike{"update of src_embed.weight", 5, 2, 1, 20, 5, 1};
  snapshot.state["trouble"]["update_spikes"] = Json::array({described_json(spike)});
  fs::create_directories(folder_ / "saved");
  write_snapshot(snapshot, folder_ / "saved");
  Trainer second(after, run_.train, *task_);
  second.load(folder_ / "saved");
  const TrainResult result = second.run();
  EXPECT_EQ(result.outcome, RunOutcome::diverged);
  EXPECT_EQ(result.steps, 5);
}

}  // namespace
}  // namespace plumb
