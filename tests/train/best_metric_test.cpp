// The metric that decides which evaluation is best and when patience runs out: it is computed, or refused at the start.
#include "plumb/run/best_metric.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "copy_task.h"
#include "plumb/base/error.h"
#include "plumb/base/json.h"
#include "plumb/train/evaluation_rank.h"
#include "plumb/train/trainer.h"
#include "small_data.h"
#include "support/errors.h"
#include "support/small_model.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

class BestMetrics : public ::testing::Test {
 protected:
  /// Every task, each with a kind of model that learns it and its data.
  struct Subject {
    std::string task, kind, data;
  };
  static std::vector<Subject> subjects() {
    return {{"translation", "encoder-decoder", "pairs"},
            {"language-modeling", "decoder", "text"},
            {"masked-language-modeling", "encoder", "text"},
            {"classification", "encoder", "labels"}};
  }

  [[nodiscard]] std::unique_ptr<Task> task_of(const Subject& subject, int64_t beam) const {
    TaskConfig config;
    const std::string toml = fmt::format("[task]\nname = \"{}\"\n[task.translation]\nbeam = {}\n", subject.task, beam);
    Config::from_string(toml, "test").read("task", config);
    return make_task(config, DataDirectory::open(folder_ / subject.data), subject.kind);
  }

  test::TemporaryDirectory folder_;
};

// However the run is configured: either it is refused, or the metric is computed, the best value is that of the
// history, and the run ends early only after `patience` values in a row that are no better.
TEST_F(BestMetrics, OfEveryTaskAreComputedOrRefused) {
  test::make_copy_task(folder_ / "pairs");
  test::make_small_text(folder_ / "text");
  test::make_small_labels(folder_ / "labels");
  std::vector<std::string> all = tasks().names(), tried;
  int64_t refused = 0, ended_early = 0;
  for (const Subject& subject : subjects()) {
    tried.push_back(subject.task);
    for (const MetricInfo& info : task_of(subject, 1)->metric_infos()) {
      const std::string name = info.name == "loss" || info.name == "nll" ? "valid_" + info.name : info.name;
      for (const auto& [score_every, beam, rate] :
           {std::tuple{-1, 1, 0.0}, {0, 1, 0.0}, {2, 1, 0.0}, {2, 0, 0.0}, {3, 1, 0.01}, {0, 0, 0.01}}) {
        const std::string where =
            fmt::format("{}, {}, score_every {}, beam {}, rate {}", subject.task, name, score_every, beam, rate);
        TrainConfig config;
        config.best_metric = name;
        config.score_every = score_every;
        config.validate_every = 2;
        config.steps = 9;
        config.patience = 2;
        config.batch_tokens = 64;
        config.learning_rate = rate;
        config.warm_up = 1;
        config.decay_start = 1;
        const std::unique_ptr<Task> task = task_of(subject, beam);
        const bool masked = subject.task == "masked-language-modeling";
        ModelConfig shape = test::small_learner(subject.kind, 2, masked ? "none" : "first");
        task->complete(shape);
        const std::unique_ptr<Model> model = make_model(shape);
        model->initialize(1);
        std::unique_ptr<Trainer> trainer;
        try {
          trainer = std::make_unique<Trainer>(*model, config, *task);
        } catch (const Error& error) {
          EXPECT_EQ(name, "bleu") << where;  // the only one that takes long
          EXPECT_TRUE(beam == 0 || score_every <= 0) << where;
          EXPECT_FALSE(error.hint().empty()) << where;
          ++refused;
          continue;
        }
        const TrainResult result = trainer->run();
        std::optional<double> best;
        int64_t best_step = 0, since = 0;
        for (const TrainPoint& point : result.history) {
          const std::optional<double> value = point.metrics.get(name);
          if (!value) continue;
          const bool better = !best || (info.larger_is_better ? *value > *best : *value < *best);
          since = better ? 0 : since + 1;
          if (!better) continue;
          best = value;
          best_step = point.step;
        }
        ASSERT_TRUE(best.has_value()) << where;
        EXPECT_EQ(result.best_step(), best_step) << where;
        if (result.steps < 9) {
          EXPECT_EQ(since, 2) << where << ", ended at " << result.steps;
        }
        ended_early += result.steps < 9 ? 1 : 0;
      }
    }
  }
  std::sort(tried.begin(), tried.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(tried, all);
  EXPECT_EQ(refused, 4);
  EXPECT_GT(ended_early, 0);
}

TEST_F(BestMetrics, ThatAreLeftOutAreRefusedByName) {
  test::make_copy_task(folder_ / "pairs");
  const auto error_of = [&](int64_t beam, const Duration& score_every, int64_t patience) {
    TrainConfig config;
    config.best_metric = "bleu";
    config.score_every = score_every;
    config.patience = patience;
    return test::message_of([&] { static_cast<void>(best_metric_of(config, *task_of(subjects()[0], beam))); });
  };
  EXPECT_EQ(error_of(0, 2, 0), "train.best_metric = \"bleu\" is never computed with task.translation.beam = 0");
  EXPECT_EQ(error_of(1, 0, 3),
            "train.patience = 3 has no effect: train.best_metric = \"bleu\" is computed only at the end with "
            "train.score_every = 0");
  EXPECT_EQ(error_of(1, 0, 0), "accepted");
  EXPECT_EQ(error_of(1, 2, 3), "accepted");
  EXPECT_FALSE(has_slow_metrics(*task_of(subjects()[0], 0)));
  EXPECT_TRUE(has_slow_metrics(*task_of(subjects()[0], 1)));
}

TEST_F(BestMetrics, AnAbsentValueIsNoEvaluation) {
  TrainState state;
  state.step = 5;
  EXPECT_TRUE(rank_evaluation(2.0, {}, 1, state).best);
  state.step = 6;
  EXPECT_FALSE(rank_evaluation({}, {}, 1, state).best);
  EXPECT_EQ(state.validations_since_best, 0);
  EXPECT_FALSE(rank_evaluation(NAN, {}, 1, state).best);
  EXPECT_EQ(state.validations_since_best, 1);
  EXPECT_EQ(state.best_step, 5);
}

}  // namespace
}  // namespace plumb
