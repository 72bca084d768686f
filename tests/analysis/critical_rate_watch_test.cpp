// The critical learning rate along a training run compared with a scan of the loss along the run's steps.
#include "plumb/analysis/watch/critical_rate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "along_training.h"

namespace plumb {
namespace {

class CriticalRateAlongTraining : public test::AlongTraining {
 protected:
  CriticalRateAlongTraining() {
    run_.model.d_model = 8;
    run_.model.feed_forward = 8;
    run_.model.activation = "gelu";
    run_.train.label_smoothing = 0.1;
    run_.train.warm_up = 5;
    run_.watch.what = {"critical_rate"};
  }

  /// The loss of the watched examples, as one batch, at these parameters.
  [[nodiscard]] double loss_at(Model& of, const Tensor& parameters) const {
    const at::NoGradGuard no_graph;
    of.parameters().flat().copy_(parameters);
    std::vector<int64_t> first(10);
    std::iota(first.begin(), first.end(), int64_t{0});
    ForwardContext context(Pass::measurement);
    return of.loss(task_->dataset("train")->batch(first), {run_.train.label_smoothing}, context).value.item<double>();
  }

  /// Trains with the watch and without, and compares each record with a scan between the parameters before and after
  /// its step. Returns the records.
  std::vector<WatchRecord> compared() {
    const auto watched = model(), again = model(), scanned = model();
    const TrainResult result = train(*watched, run_.train, *task_, {}, run_.watch);
    std::vector<Tensor> places = {again->parameters().flat().clone()};
    test::Moments moments;
    moments.stop = [&] {
      places.push_back(again->parameters().flat().clone());
      return false;
    };
    train(*again, run_.train, *task_, moments);
    EXPECT_TRUE(at::equal(watched->parameters().flat(), again->parameters().flat()));
    const Schedule schedule = make_schedule(run_.train, run_.model.d_model);
    for (const WatchRecord& record : result.watched) {
      SCOPED_TRACE(record.step);
      if (record.step == 0) {
        EXPECT_FALSE(record.watches.contains("critical_rate"));
        continue;
      }
      const auto found = record.find<CriticalRateMeasurement>();
      EXPECT_TRUE(found) << to_json(record);
      if (!found) continue;
      const Tensor before = places[static_cast<size_t>(record.step - 1)];
      const Tensor after = places[static_cast<size_t>(record.step)];
      const double rate = schedule(record.step);
      const auto along = [&](double at_rate) {
        return loss_at(*scanned, before + (after - before) * (at_rate / rate));
      };
      const double here = loss_at(*scanned, before);
      EXPECT_EQ(found->learning_rate, rate);
      EXPECT_NEAR(found->loss_before, here, 1e-12);
      EXPECT_NEAR(found->loss_after, loss_at(*scanned, after), 1e-12);
      const double h = 1e-4 * rate;
      const double slope = (8 * (along(-h) - along(h)) - (along(-2 * h) - along(2 * h))) / (12 * h);
      EXPECT_NEAR(found->slope, slope, 1e-6 * std::abs(slope) + 1e-9);
      EXPECT_EQ(found->value.has_value(), slope > 0);
      if (!found->value) continue;
      const double low = found->low.value(), high = found->high.value(), value = *found->value;
      for (int i = 1; i <= 40; ++i) EXPECT_LE(along(low * i / 40), here) << i;
      EXPECT_GT(along(high), here);
      EXPECT_LE(high, 1.05 * low);
      EXPECT_TRUE(low <= value && value <= high);
      EXPECT_NEAR(found->share.value(), rate / value, 1e-12);
    }
    return result.watched;
  }
};

TEST_F(CriticalRateAlongTraining, IsWhereTheLossRisesAlongTheStepThatWasTaken) {
  // The whole step: clipped, with weight decay, and slower for some parameters.
  run_.train.optimizer = "adamw";
  run_.train.weight_decay = 0.1;
  run_.train.clip_norm = 0.5;
  run_.train.groups = {{.pattern = {"encoder.*"}, .learning_rate_factor = 0.25}};
  run_.train.steps = 9;
  run_.watch.every = 3;
  EXPECT_EQ(compared().size(), 5U);  // 0, 1, 3, 6, 9
}

TEST_F(CriticalRateAlongTraining, IsBelowTheRateOfAStepThatRaisesTheLoss) {
  // Gradient descent with heavy momentum overshoots, and then starts uphill.
  run_.train.optimizer = "sgd";
  Config::from_string("[train.sgd]\nmomentum = 0.98\n", "test").read("train", run_.train);
  run_.train.warm_up = 0;
  run_.train.steps = 20;
  run_.watch.every = 1;
  int above = 0, below = 0, uphill = 0;
  for (const double learning_rate : {0.3, 2.0}) {
    run_.train.learning_rate = learning_rate;
    for (const WatchRecord& record : compared()) {
      if (record.step == 0) continue;
      const auto found = record.find<CriticalRateMeasurement>();
      ASSERT_TRUE(found);
      if (!found->value) {
        ++uphill;
        continue;
      }
      const bool raised = found->loss_after > found->loss_before;
      const double share = found->share.value();
      if (std::abs(share - 1) > 0.05) {
        EXPECT_EQ(raised, share > 1) << record.step;
      }
      ++(share > 1 ? above : below);
    }
  }
  EXPECT_GT(above, 0);
  EXPECT_GT(below, 0);
  EXPECT_GT(uphill, 0);
}

TEST_F(CriticalRateAlongTraining, IsAbsentIfNothingMoves) {
  run_.train.groups = {{.pattern = {"*"}, .frozen_until = -1}};
  run_.train.steps = 1;
  run_.watch.every = 1;
  const auto still = model();
  const TrainResult result = train(*still, run_.train, *task_, {}, run_.watch);
  const auto found = result.watched.back().find<CriticalRateMeasurement>();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->slope, 0);
  EXPECT_EQ(found->loss_before, found->loss_after);
  EXPECT_FALSE(found->value);
}

}  // namespace
}  // namespace plumb
