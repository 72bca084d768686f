// The paper's lemmas compared with Monte Carlo simulations of models in its setting.
#include "plumb/analysis/theory.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plumb/analysis/gradient.h"
#include "plumb/analysis/signal.h"
#include "plumb/analysis/statistics.h"
#include "plumb/base/random.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/ops/norm.h"
#include "support/batches.h"

namespace plumb {
namespace {

constexpr int64_t kWidth = 64;
constexpr int64_t kLayers = 3;

ModelConfig setting(const std::string& residual, int64_t feed_forward = kWidth) {
  ModelConfig config;
  config.residual = residual;
  config.positions = "learned";  // N(0, 0.02²): inputs are Gaussian, E‖x‖² = d (1 + 0.0004)
  config.initialization = "theory";
  config.d_model = kWidth;
  config.feed_forward = feed_forward;
  config.heads = 1;
  config.encoder_layers = config.decoder_layers = kLayers;
  config.source_vocabulary = config.target_vocabulary = 200;
  config.share_embeddings = "none";
  config.dropout = 0;
  return config;
}

/// Sentences of `words` random tokens per side.
Batch sentences(int64_t pairs, int64_t words) {
  Random random(7, "sentences");
  const auto draw = [&] {
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < words; ++i) ids.push_back(static_cast<int32_t>(4 + random.below(196)));
    return ids;
  };
  Batch batch;
  for (int64_t pair = 0; pair < pairs; ++pair) append(batch, draw(), draw(), pair);
  return batch;
}

/// E‖x‖² of every point, over initializations.
std::map<std::string, Interval> mean_squares(const ModelConfig& config, const Batch& batch, int64_t seeds) {
  std::map<std::string, std::vector<double>> values;
  EncoderDecoder model(config, at::kDouble);
  for (int64_t seed = 1; seed <= seeds; ++seed) {
    model.initialize(static_cast<uint64_t>(seed));
    for (const LayerPoint& point : measure_signal(model, {batch}).points)
      values[to_string(point.point)].push_back(point.mean_square);
  }
  std::map<std::string, Interval> result;
  for (const auto& [name, sample] : values) result[name] = confidence_interval(sample);
  return result;
}

std::string point(const std::string& stack, int64_t layer, const std::string& where) {  // layer from 1
  return stack + ".layers." + std::to_string(layer - 1) + "." + where;
}

/// The expectation lies within twice the 95% interval, about four standard errors; the interval is narrow.
void expect_mean(const Interval& measured, double expected, const std::string& what) {
  const double half = measured.high - measured.mean;
  EXPECT_NEAR(measured.mean, expected, 2 * half) << what;
  EXPECT_LT(half, 0.03 * expected) << what << ": too few samples to tell";
}

TEST(Theory, Lemma2PostLayerNorm) {
  const auto measured = mean_squares(setting("post-ln"), sentences(8, 6), 90);
  EXPECT_EQ(theory::lemma2_post_ln(kWidth), 1.5 * kWidth);
  for (const std::string stack : {"encoder", "decoder"}) {
    for (int64_t layer = 1; layer <= kLayers; ++layer) {
      const std::string sum = point(stack, layer, "feed_forward.sum");
      expect_mean(measured.at(sum), theory::lemma2_post_ln(kWidth), sum);
      EXPECT_NEAR(measured.at(point(stack, layer, "feed_forward.stream")).mean, kWidth, 1e-3 * kWidth);
    }
  }
}

TEST(Theory, Lemma2PostLayerNormOfAnyFeedForwardWidth) {
  const auto measured = mean_squares(setting("post-ln", 4 * kWidth), sentences(8, 6), 60);
  EXPECT_DOUBLE_EQ(theory::lemma2_post_ln(kWidth, 4 * kWidth), kWidth * (1 + 8.0 / 25));
  const std::string sum = point("encoder", kLayers, "feed_forward.sum");
  expect_mean(measured.at(sum), theory::lemma2_post_ln(kWidth, 4 * kWidth), sum);
}

TEST(Theory, Lemma2PreLayerNorm) {
  const auto measured = mean_squares(setting("pre-ln"), sentences(8, 6), 60);
  for (int64_t layer = 1; layer <= kLayers; ++layer) {
    const auto [low, high] = theory::lemma2_pre_ln(layer, kWidth);
    const auto l = static_cast<double>(layer);
    EXPECT_DOUBLE_EQ(low, (1 + l / 2) * kWidth);
    EXPECT_DOUBLE_EQ(high, (1 + 3 * l / 2) * kWidth);
    const Interval encoder = measured.at(point("encoder", layer, "feed_forward.stream"));
    EXPECT_GT(encoder.low, low);
    EXPECT_LT(encoder.high, high);
    // Two attentions per decoder layer, each of which adds between 0 and d.
    const Interval decoder = measured.at(point("decoder", layer, "feed_forward.stream"));
    const auto [decoder_low, decoder_high] = theory::lemma2_pre_ln(layer, kWidth, kWidth, 2, kWidth);
    EXPECT_GT(decoder.low, decoder_low);
    EXPECT_LT(decoder.high, decoder_high);
  }
}

TEST(Theory, Lemma2PreLayerNormReachesItsUpperBoundWithOneToken) {
  // The mean over one position is the position itself, so attention adds the full d. The source holds only EOS.
  const auto measured = mean_squares(setting("pre-ln"), sentences(1, 0), 500);
  for (int64_t layer = 1; layer <= kLayers; ++layer) {
    const std::string stream = point("encoder", layer, "feed_forward.stream");
    expect_mean(measured.at(stream), theory::lemma2_pre_ln(layer, kWidth).second, stream);
  }
}

TEST(Theory, Lemma3NormOfTheJacobianOfLayerNorm) {
  // The ratio that SignalMeter computes in closed form, against the largest singular value of the Jacobian.
  Random random(5, "lemma 3");
  const int64_t d = 7;
  Tensor x = at::empty({1, d}, at::kDouble);
  for (int64_t i = 0; i < d; ++i) x.data_ptr<double>()[i] = 0.8 + 2 * random.normal();
  x.requires_grad_(true);
  const Tensor y = ops::layer_norm(x, at::ones({d}, at::kDouble), at::zeros({d}, at::kDouble), 1e-12);
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < d; ++i) rows.push_back(gradients({y.select(0, 0).select(0, i)}, {x}, {}, false, true)[0]);
  const double norm = at::linalg_svdvals(at::cat(rows)).max().item<double>();
  SignalMeter meter;
  meter.see({}, x);
  const double expected = norm * x.norm().item<double>() / std::sqrt(static_cast<double>(d));
  EXPECT_NEAR(meter.profile().at({}).layer_norm_ratio, expected, 1e-9 * expected);
}

TEST(Theory, BoundsOfTheorem1) {
  EXPECT_NEAR(theory::theorem1_post_ln(512), 512 * 2.4976638, 1e-3);  // √(ln 512) = √(9 ln 2)
  EXPECT_NEAR(theory::theorem1_pre_ln(512, 4), 512 * 2.4976638 / 2, 1e-3);
  EXPECT_NEAR(theory::theorem1_probability(0.1, 0.125), 0.765, 1e-12);
}

TEST(Theory, PlacementKnowsTheSchemesByBothNames) {
  using theory::Placement;
  EXPECT_EQ(theory::placement("post-ln"), Placement::post_ln);
  EXPECT_EQ(theory::placement("/dan"), Placement::post_ln);
  EXPECT_EQ(theory::placement("pre-ln"), Placement::pre_ln);
  EXPECT_EQ(theory::placement("n/da"), Placement::pre_ln);
  EXPECT_EQ(theory::placement("residual"), Placement::other);
}

// Theorem 1 is about depth: the last layer's gradient decreases as 1/√L under Pre-LN, and not under Post-LN.
TEST(Theory, Theorem1DepthDependence) {
  const auto last_gradient = [](const std::string& residual, int64_t layers) {
    ModelConfig config = setting(residual);
    config.encoder_layers = config.decoder_layers = layers;
    EncoderDecoder model(config, at::kDouble);
    std::vector<double> norms;
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      model.initialize(seed);
      norms.push_back(measure_gradients(model, {sentences(8, 6)})
                          .norm("decoder.layers." + std::to_string(layers - 1) + ".linear2.weight"));
    }
    return confidence_interval(norms);
  };
  const Interval post_shallow = last_gradient("post-ln", 2);
  const Interval post_deep = last_gradient("post-ln", 12);
  const Interval pre_shallow = last_gradient("pre-ln", 2);
  const Interval pre_deep = last_gradient("pre-ln", 12);
  EXPECT_NEAR(post_deep.mean / post_shallow.mean, 1, 0.25);
  EXPECT_LT(pre_deep.high, 0.7 * pre_shallow.low);
  EXPECT_LT(pre_deep.high, post_deep.low);
}

}  // namespace
}  // namespace plumb
