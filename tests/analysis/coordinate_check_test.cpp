// The coordinate check: exponents of made-up sizes, and sizes compared with a training loop written out.
#include "plumb/analysis/coordinate_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "support/batches.h"
#include "support/small_model.h"

namespace plumb {
namespace {

/// [seed]: 3·scale^(exponent + slopes_off[seed]).
std::vector<std::vector<double>> made_up(const std::vector<double>& scales, double exponent,
                                         const std::vector<double>& slopes_off) {
  std::vector<std::vector<double>> sizes;
  for (const double off : slopes_off) {
    sizes.emplace_back();
    for (const double scale : scales) sizes.back().push_back(3 * std::pow(scale, exponent + off));
  }
  return sizes;
}

TEST(ScalingExponent, IsJudgedByItsIntervalAndTheMargin) {
  const std::vector<double> scales = {32, 64, 128, 256};
  const std::vector<double> steady = {-0.01, 0, 0.01};
  const std::vector<double> noisy = {-0.3, 0, 0.3};
  const auto trend = [&](double exponent, const std::vector<double>& off) {
    return scaling_exponent(scales, made_up(scales, exponent, off), 0.1).trend;
  };
  EXPECT_EQ(trend(0.5, steady), Trend::grows);
  EXPECT_EQ(trend(-0.5, steady), Trend::shrinks);
  EXPECT_EQ(trend(0, steady), Trend::constant);
  EXPECT_EQ(trend(0.05, steady), Trend::constant);
  EXPECT_EQ(trend(0.1, steady), Trend::undecided);  // the interval covers the margin
  EXPECT_EQ(trend(0, noisy), Trend::undecided);     // a wide interval does not show constancy
  EXPECT_EQ(trend(0.5, noisy), Trend::undecided);
  EXPECT_EQ(trend(0, {0.0}), Trend::undecided);  // one seed

  const ScalingExponent found = scaling_exponent(scales, made_up(scales, 0.5, steady), 0.1);
  EXPECT_NEAR(found.exponent.mean, 0.5, 1e-12);
  EXPECT_NEAR(found.at_the_end, 0.5, 1e-12);
  // s = 0.01, n = 3, t = 4.3027: half-width t·s/√3.
  EXPECT_NEAR(found.exponent.high - 0.5, 4.302653 * 0.01 / std::sqrt(3.0), 1e-6);
}

TEST(ScalingExponent, BentLinesShowInTheLastSlope) {
  const std::vector<double> scales = {1, 2, 4};
  const ScalingExponent found = scaling_exponent(scales, {{1, 2, 2}, {1, 2, 2}}, 0.1);
  EXPECT_NEAR(found.exponent.mean, 0.5, 1e-12);
  EXPECT_NEAR(found.at_the_end, 0, 1e-12);
}

TEST(ScalingExponent, DivergenceIsNoTrend) {
  const double infinite = std::numeric_limits<double>::infinity();
  for (const double bad : {infinite, std::nan(""), 0.0})
    EXPECT_EQ(scaling_exponent({1, 2}, {{1, 1}, {1, bad}}, 0.1).trend, Trend::diverged) << bad;
  EXPECT_EQ(to_string(Trend::diverged), "diverged");
  EXPECT_THROW(scaling_exponent({1}, {{1}}, 0.1), Error);
  EXPECT_THROW(scaling_exponent({1, 2}, {}, 0.1), Error);
  EXPECT_THROW(scaling_exponent({1, 2}, {{1, 1, 1}}, 0.1), Error);
}

/// Of a constant size with noise that the interval can resolve, about one interval in twenty excludes the exponent 0,
/// and at most 1% are judged to grow or shrink beyond the margin.
TEST(ScalingExponent, IsRarelyWrongAboutNoise) {
  const std::vector<double> scales = {32, 64, 128, 256};
  Random random(1, "test");
  int64_t outside = 0;
  int64_t wrong = 0;
  constexpr int64_t kTrials = 2000;
  for (int64_t trial = 0; trial < kTrials; ++trial) {
    std::vector<std::vector<double>> sizes(5);
    for (std::vector<double>& of_seed : sizes) {
      for (size_t i = 0; i < scales.size(); ++i) of_seed.push_back(std::exp(0.1 * random.normal()));
    }
    const ScalingExponent found = scaling_exponent(scales, sizes, 0.1);
    if (found.exponent.low > 0 || found.exponent.high < 0) ++outside;
    if (found.trend == Trend::grows || found.trend == Trend::shrinks) ++wrong;
  }
  EXPECT_NEAR(static_cast<double>(outside) / kTrials, 0.05, 0.015);
  EXPECT_LE(wrong, kTrials / 100);
}

TEST(Coordinates, StepsKeepUnitMatrices) {
  ModelConfig config = test::small_model("decoder", 1);
  config.residual = "ngpt";
  Batch batch;
  append(batch, {}, std::vector<int32_t>{7, 8, 9}, 0);
  const std::unique_ptr<Model> model = make_model(config, at::kDouble);
  model->initialize(1);
  (void)measure_coordinates(*model, {batch}, batch, {.learning_rate = 0.1});
  const Tensor rows = model->parameters().at("decoder.layers.0.self_attn.in_proj_weight").value.norm(2, 1);
  EXPECT_LT((rows - 1).abs().max().item<double>(), 1e-12);
}

TEST(Coordinates, AreThoseOfATrainingLoop) {
  ModelConfig config = test::small_model("encoder-decoder", 1);
  config.residual = "residual-dual";  // of two streams, the first is measured
  std::vector<Batch> steps(2);
  append(steps[0], std::vector<int32_t>{4, 5, 6}, std::vector<int32_t>{7, 8}, 0);
  append(steps[1], std::vector<int32_t>{9, 10}, std::vector<int32_t>{11, 4, 5}, 1);
  Batch measured;
  append(measured, std::vector<int32_t>{6, 7, 8, 9}, std::vector<int32_t>{10, 11}, 2);
  const auto fresh = [&] {
    std::unique_ptr<Model> model = make_model(config, at::kDouble);
    model->initialize(1);
    return model;
  };
  const std::unique_ptr<Model> model = fresh();
  CoordinateOptions options;
  options.optimizer = "sgd";
  options.learning_rate = 0.1;
  options.clip_norm = 0.5;
  const CoordinateSizes found = measure_coordinates(*model, steps, measured, options);

  // SGD with momentum 0.9 and clipping, written out.
  const std::unique_ptr<Model> other = fresh();
  const Tensor& flat = other->parameters().flat();
  const auto stream_and_logits = [&] {
    const at::NoGradGuard no_graph;
    std::vector<Tensor> seen;
    ForwardContext context(Pass::measurement);
    context.watch([&](const ActivationPoint& point, const Tensor& x) {
      if (point.point == Point::stream || point.point == Point::result) seen.push_back(x.clone());
    });
    seen.push_back(other->logits(other->states(measured, context)));
    return seen;
  };
  const std::vector<Tensor> before = stream_and_logits();
  Tensor momentum = at::zeros_like(flat);
  for (const Batch& batch : steps) {
    ForwardContext context(Pass::measurement);
    const Tensor g = joined(gradients({other->loss(batch, {}, context).value}, other->parameters().values(), {}));
    const at::NoGradGuard no_graph;
    const double norm = g.norm().item<double>();
    EXPECT_GT(norm, 0.5);
    momentum = 0.9 * momentum + g * (0.5 / norm);
    flat.sub_(0.1 * momentum);
  }
  const std::vector<Tensor> after = stream_and_logits();
  ASSERT_EQ(found.activations.size(), before.size() - 1);
  EXPECT_EQ(to_string(found.activations.front().point), "encoder.layers.0.self_attention.stream");
  EXPECT_EQ(to_string(found.activations.back().point), "decoder.result");
  const auto rms = [](const Tensor& x) { return std::sqrt(x.square().mean().item<double>()); };
  for (size_t i = 0; i < found.activations.size(); ++i) {
    EXPECT_NEAR(found.activations[i].before, rms(before[i]), 1e-12);
    EXPECT_NEAR(found.activations[i].after, rms(after[i]), 1e-9);
    EXPECT_NEAR(found.activations[i].change, rms(after[i] - before[i]), 1e-9);
    EXPECT_GT(found.activations[i].change, 1e-4);
  }
  const auto centered = [&](const Tensor& logits) { return logits - logits.mean(1, true); };
  EXPECT_NEAR(found.logits.before, rms(centered(before.back())), 1e-12);
  EXPECT_NEAR(found.logits.change, rms(centered(after.back() - before.back())), 1e-9);
}

}  // namespace
}  // namespace plumb
