// The gradient noise scale compared with all possible draws and with gradients of single batches.
#include "plumb/analysis/noise_scale.h"

#include <gtest/gtest.h>

#include <cmath>

#include "along_training.h"
#include "plumb/analysis/curvature/hessian.h"
#include "plumb/analysis/watch/gradient_noise.h"
#include "plumb/base/error.h"

namespace plumb {
namespace {

using NoiseAlongTraining = test::AlongTraining;

TEST(NoiseScale, HasNoBiasOverAllDraws) {
  // Per-example gradients of ½(x·w − y)² at a given w, x·(x·w − y), over every draw of two batches of two examples.
  const double x[4][2] = {{1, 0.5}, {-2, 1}, {0.25, 3}, {1.5, -1}}, y[4] = {1, -2, 0.5, 3}, w[2] = {0.7, -0.4};
  double g[4][2];
  double mean[2] = {0, 0};
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 2; ++k) {
      g[i][k] = x[i][k] * (x[i][0] * w[0] + x[i][1] * w[1] - y[i]);
      mean[k] += g[i][k] / 4;
    }
  }
  double trace = 0;
  for (const auto& each : g) {
    for (int k = 0; k < 2; ++k) trace += (each[k] - mean[k]) * (each[k] - mean[k]) / 4;
  }
  double found_trace = 0, found_square = 0;
  for (int draw = 0; draw < 256; ++draw) {
    const int i[4] = {draw % 4, draw / 4 % 4, draw / 16 % 4, draw / 64};
    double squares = 0, square_of_mean = 0;
    for (int k = 0; k < 2; ++k) {
      const double first = (g[i[0]][k] + g[i[1]][k]) / 2, second = (g[i[2]][k] + g[i[3]][k]) / 2;
      squares += (first * first + second * second) / 2;
      square_of_mean += (first + second) * (first + second) / 4;
    }
    const NoiseScale noise = noise_scale(squares, square_of_mean, 2, 2);
    found_trace += noise.trace / 256;
    found_square += noise.square_gradient / 256;
  }
  EXPECT_NEAR(found_trace, trace, 1e-12);
  EXPECT_NEAR(found_square, mean[0] * mean[0] + mean[1] * mean[1], 1e-12);
  EXPECT_EQ(noise_scale(3, 2, 2, 4).examples(), 8.0);  // ‖G‖² = 1, tr Σ = 8
  EXPECT_TRUE(std::isnan(noise_scale(3, 1, 2, 4).examples()));
  EXPECT_THROW((void)noise_scale(1, 1, 1, 4), Error);
}

TEST_F(NoiseAlongTraining, NoiseIsThatOfTheGradientsOfTheBatches) {
  const auto initial = model();
  const std::vector<Batch> batches = {examples({3, 1}), examples({5, 7}), examples({8, 2})};
  const NoiseScale found = measure_noise_scale(*initial, batches, 2, 0.1);
  // Each batch's own mean gradient, weighted by its share of the labels.
  double labels = 0;
  for (const Batch& batch : batches) labels += static_cast<double>(batch.labels.size());
  double squares = 0;
  Tensor mean = at::zeros({initial->parameters().count()}, at::kDouble);
  for (const Batch& batch : batches) {
    const Tensor g =
        mean_loss(*initial, {batch}, 0.1).gradient * (3 * static_cast<double>(batch.labels.size()) / labels);
    squares += g.square().sum().item<double>() / 3;
    mean += g / 3;
  }
  EXPECT_NEAR(found.mean_square_norm, squares, 1e-12 * squares);
  EXPECT_NEAR(found.square_norm_of_mean, mean.square().sum().item<double>(), 1e-12 * squares);
  EXPECT_LT((mean - mean_loss(*initial, batches, 0.1).gradient).norm().item<double>(), 1e-13);
  EXPECT_NEAR(found.mean_square_norm, found.square_gradient + found.trace / 2, 1e-12 * squares);
}

TEST_F(NoiseAlongTraining, NoiseIsDrawnAnewAtEachStep) {
  read_watch("what = \"gradient_noise\"\n[watch.gradient_noise]\nbatches = 3\nexamples = 2\n");
  run_.train.learning_rate = 0;  // the model stays the same
  const auto trained = model(), again = model();
  const TrainResult result = train(*trained, run_.train, *task_, {}, run_.watch);
  const TrainResult second = train(*again, run_.train, *task_, {}, run_.watch);
  ASSERT_EQ(result.watched.size(), 3U);
  const auto norm = [](const WatchRecord& record) { return record.find<GradientNoiseMeasurement>()->mean_square_norm; };
  EXPECT_NE(norm(result.watched[0]), norm(result.watched[1]));
  EXPECT_EQ(norm(result.watched[2]), norm(second.watched[2]));
  EXPECT_EQ(result.watched[0].find<GradientNoiseMeasurement>()->gradients, 3);
}

}  // namespace
}  // namespace plumb
