// Accumulating a point: its means, and the status shown during its steps.
#include "plumb/train/point_recorder.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plumb {
namespace {

TEST(PointRecorder, MeansAreOverTheLabelsSinceTheLastPoint) {
  PointRecorder recorder;
  TrainState state;
  state.loss = 30;
  state.nll = 20;
  state.weight = 10;
  state.tokens = 77;
  recorder.set_peak_rate(1000);
  recorder.add_work(40, 600);
  recorder.add_step(2, 0.25, {1, 100, 0}, {1.5, 400, 0});
  recorder.add_work(40, 600);
  recorder.add_step(2, 0.75, {2, 400, 0}, {2.5, 700, 0});
  recorder.close(state, 0);
  const TrainPoint point = recorder.take();
  EXPECT_EQ(point.loss, 3);
  EXPECT_EQ(point.nll, 2);
  EXPECT_EQ(point.tokens, 77);
  EXPECT_EQ(point.tokens_per_second, 20);
  EXPECT_EQ(point.ceiling_fraction, 0.3);
  EXPECT_EQ(point.data_seconds, 0.5);
  EXPECT_EQ(point.exchange_seconds, 0.5);
  EXPECT_EQ(point.exchange_bytes, 300);
  EXPECT_FALSE(point.skipped_steps);
  EXPECT_EQ(state.loss, 0);
  EXPECT_EQ(state.weight, 0);
}

TEST(PointRecorder, ThereIsNoMeanOfNoSteps) {
  PointRecorder recorder;
  TrainState state;
  recorder.close(state, 0);  // labels without weight
  EXPECT_EQ(recorder.take().loss, 0);
  recorder.close(state, 3);
  const TrainPoint point = recorder.take();
  EXPECT_TRUE(std::isnan(point.loss));
  EXPECT_EQ(point.skipped_steps, 3);
}

TEST(PointRecorder, ARollbackForgetsALossThatIsNotFinite) {
  PointRecorder recorder;
  recorder.add_loss(3, 2);
  recorder.add_loss(NAN, NAN);
  recorder.point.gradient_norm = NAN;
  recorder.begin_anew();
  recorder.add_loss(4, 3);
  EXPECT_EQ(recorder.status().loss, 4);
  EXPECT_EQ(recorder.status().nll, 3);
  EXPECT_FALSE(recorder.status().gradient_norm);
}

}  // namespace
}  // namespace plumb
