// Features of a training run where they meet: each is tested by itself elsewhere.
#include <gtest/gtest.h>

#include "copy_task.h"
#include "plumb/base/json.h"
#include "plumb/base/progress.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/train/snapshot.h"
#include "plumb/train/trainer.h"
#include "support/ranks.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

/// A task with a metric of its own that only `score` computes: always 5.
class SlowlyScored final : public Task {
 public:
  explicit SlowlyScored(const Task& inner) : Task(inner.data()), inner_(inner) {}
  [[nodiscard]] std::string name() const override { return "slowly scored"; }
  [[nodiscard]] std::unique_ptr<Dataset> dataset(const std::string& split) const override {
    return inner_.dataset(split);
  }
  [[nodiscard]] std::string model_kind() const override { return inner_.model_kind(); }
  void complete(ModelConfig& config) const override { inner_.complete(config); }
  [[nodiscard]] Metrics score(Model&, const std::string&) const override {
    Metrics metrics;
    metrics.set("five", 5);
    return metrics;
  }
  [[nodiscard]] std::vector<MetricInfo> metric_infos() const override {
    std::vector<MetricInfo> infos = Task::metric_infos();
    infos.push_back({"five", "always 5"});
    return infos;
  }

 private:
  const Task& inner_;
};

class Combined : public ::testing::Test {
 protected:
  Combined() {
    set_verbosity(Verbosity::quiet);
    test::make_copy_task(folder_ / "data");
    run_ = test::copy_run(folder_ / "data");
    task_ = make_task({}, DataDirectory::open(folder_ / "data"), run_.model.kind);
    task_->complete(run_.model);
  }
  void TearDown() override { set_verbosity(Verbosity::normal); }

  [[nodiscard]] EncoderDecoder model() const {
    EncoderDecoder model(run_.model, at::kDouble);
    model.initialize(1);
    return model;
  }

  test::TemporaryDirectory folder_;
  RunConfig run_;
  std::unique_ptr<Task> task_;
};

TEST_F(Combined, SlowMetricsThatARunWasLeftWithoutAndAStateThatIsSharedOut) {
  run_.train.shard_optimizer = true;
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
    TrainHooks hooks;
    hooks.stop = [left = 5]() mutable { return --left == 0; };
    if (group.rank() == 0) hooks.checkpoint = [&](const Trainer& trained) { trained.save(saved); };
    EXPECT_EQ(trainer.run(hooks).outcome, "stopped");
  });
  EXPECT_TRUE(read_json(saved / "state.json").contains("pending_point"));
  std::vector<int64_t> best;
  test::as_ranks(2, [&](const Group& group) {
    EncoderDecoder learner = model();
    Trainer trainer(learner, run_.train, task);
    if (group.rank() == 0) trainer.load(saved);
    trainer.join(group);
    TrainHooks hooks;
    if (group.rank() == 0) {
      hooks.best = [&](const Trainer& trained) {
        EXPECT_FALSE(trained.snapshot().files.empty());
        best.push_back(trained.step());
      };
    }
    const TrainResult result = trainer.run(hooks);
    EXPECT_EQ(result.outcome, "finished");
    EXPECT_EQ(result.best_step, 5);
  });
  EXPECT_EQ(best, (std::vector<int64_t>{5}));
}

}  // namespace
}  // namespace plumb
