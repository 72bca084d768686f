// The sizes of branches and the similarity of tokens: the meter on made-up streams, the moments of the recursion
// against explicit vectors and other formulas, and the recursion against models.
#include "plumb/analysis/branch_stream.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "plumb/analysis/backward_gain.h"
#include "plumb/analysis/branch_recursion.h"
#include "plumb/base/random.h"
#include "plumb/model/kind.h"
#include "support/batches.h"
#include "support/small_model.h"

namespace plumb {
namespace {

Tensor rows(const std::vector<std::vector<double>>& values) {
  const Tensor out = at::empty({std::ssize(values), std::ssize(values[0])}, at::kDouble);
  for (int64_t i = 0; i < out.size(0); ++i) {
    for (int64_t j = 0; j < out.size(1); ++j) out[i][j] = values[static_cast<size_t>(i)][static_cast<size_t>(j)];
  }
  return out;
}

TEST(BranchMeter, FindsRatioAndSimilarity) {
  const LayerId id{StackKind::decoder, 0, SubLayerKind::feed_forward};
  const Tensor x = rows({{1, 0, 0}, {0, 1, 0}, {0, 0, 1}});
  const Tensor f = rows({{0, 4, 0}, {0, 0, 4}, {4, 0, 0}});
  BranchMeter meter;
  meter.begin({}, Ragged({2, 1}));  // the third token has no other
  meter.see({{StackKind::decoder}, Point::input}, x);
  meter.see({id, Point::input}, x);
  meter.see({id, Point::output}, f);
  meter.see({id, Point::sum}, 2 * x + 3 * f);
  meter.see({id, Point::stream}, rows({{1, 0, 0}, {1, 1, 0}, {5, 5, 5}}));
  const std::vector<BranchPoint> points = meter.points();
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].id, id);
  EXPECT_NEAR(points[0].ratio, 3.0 * 4 / 2, 1e-12);
  EXPECT_NEAR(points[0].similarity_before, 0, 1e-12);
  EXPECT_NEAR(points[0].similarity, 1 / std::numbers::sqrt2, 1e-12);
}

/// Tokens with a common part: orthogonal unit vectors make their cosines exactly ρ.
TEST(BranchRecursion, UniformAttentionIsTheMeanOfExplicitVectors) {
  constexpr int64_t kTokens = 7;
  constexpr double kSimilarity = 0.3;
  const Tensor unit = at::eye(kTokens + 1, at::kDouble);
  const Tensor x =
      std::sqrt(kSimilarity) * unit.narrow(0, 0, 1) + std::sqrt(1 - kSimilarity) * unit.narrow(0, 1, kTokens);
  for (const bool causal : {false, true}) {
    Tensor weights = at::ones({kTokens, kTokens}, at::kDouble);
    if (causal) weights = weights.tril();
    const Tensor mean = at::matmul(weights / weights.sum(1, true), x);
    double cosines = 0;
    for (int64_t j = 0; j < kTokens; ++j) {
      for (int64_t i = 0; i < j; ++i)
        cosines += ((mean[i] * mean[j]).sum() / (mean[i].norm() * mean[j].norm())).item<double>();
    }
    // x has squared length 1 for each token: mean square 1 in these units.
    const TokenMoments found = attended({1, kSimilarity}, kTokens, causal, {});
    EXPECT_NEAR(found.mean_square, mean.square().sum(1).mean().item<double>(), 1e-12);
    EXPECT_NEAR(found.similarity, cosines / (kTokens * (kTokens - 1) / 2.0), 1e-12);
  }
}

/// Of many keys, Σa² = e^(σ²)/n, and Σa·a' = e^(rσ²)/n for scores with correlation r.
TEST(BranchRecursion, ScoresConcentrateAttention) {
  constexpr double kSimilarity = 0.2, kVariance = 0.5, kCorrelation = 0.4, kTokens = 3000;
  const double own = (1 - kSimilarity) / kTokens;
  const TokenMoments found = attended({2, 0.0}, kTokens, false, {kVariance, kCorrelation});
  EXPECT_NEAR(found.mean_square, 2 * std::exp(kVariance) / kTokens, 0.01 * found.mean_square);
  EXPECT_NEAR(found.similarity, std::exp((kCorrelation - 1) * kVariance), 0.01);
  const TokenMoments similar = attended({1, kSimilarity}, kTokens, false, {kVariance, kCorrelation});
  EXPECT_NEAR(similar.mean_square, kSimilarity + own * std::exp(kVariance), 1e-5);
}

/// ReLU: Cho & Saul 2009, arXiv 1112.3712, equation 6. GELU and SiLU: by a finer grid of their own, in Python.
TEST(BranchRecursion, ActivationsAreTheirIntegrals) {
  for (const double similarity : {-0.5, 0.0, 0.4, 0.95, 1.0}) {
    const TokenMoments relu = activated("relu", {0.5, similarity}, 3).value();
    const double angle = std::acos(similarity);
    EXPECT_NEAR(relu.mean_square, 0.75, 1e-3);
    EXPECT_NEAR(relu.similarity, (std::sin(angle) + (std::numbers::pi - angle) * similarity) / std::numbers::pi, 2e-3);
  }
  const TokenMoments gelu = activated("gelu", {1.3, 0.6}, 1).value();
  EXPECT_NEAR(gelu.mean_square, 0.5725551139, 1e-6);
  EXPECT_NEAR(gelu.similarity, 0.6225175627, 1e-6);
  const TokenMoments silu = activated("silu", {0.65, 0.6}, 2).value();
  EXPECT_NEAR(silu.mean_square, 0.4838665336, 1e-6);
  EXPECT_NEAR(silu.similarity, 0.6072820581, 1e-6);
  const TokenMoments gated = activated("swiglu", {0.65, 0.6}, 2).value();  // a second factor of its own
  EXPECT_NEAR(gated.mean_square, 0.4838665336 * 1.3, 1e-6);
  EXPECT_NEAR(gated.similarity, 0.6072820581 * 0.6, 1e-6);
  EXPECT_FALSE(activated("unknown", {1, 0}, 1).has_value());
}

Batch random_pairs(int64_t vocabulary) {
  Batch batch;
  Random random(3, "pairs");
  for (int64_t pair = 0; pair < 12; ++pair) {
    std::vector<int32_t> source, target;
    for (int64_t i = 0; i < 10; ++i) {
      source.push_back(static_cast<int32_t>(4 + random.below(static_cast<uint64_t>(vocabulary - 4))));
      target.push_back(static_cast<int32_t>(4 + random.below(static_cast<uint64_t>(vocabulary - 4))));
    }
    append(batch, source, target, pair);
  }
  return batch;
}

ModelConfig wide_model(const std::string& residual, const std::string& initialization) {
  ModelConfig config = test::small_model("encoder-decoder", 4, 200);
  config.residual = residual;
  config.initialization = initialization;
  config.d_model = 128;
  config.heads = 4;
  config.feed_forward = 256;
  config.positions = "none";
  config.share_embeddings = "none";
  return config;
}

TEST(BranchRecursion, PredictsModelsAtInitialization) {
  constexpr uint64_t kSeeds = 4;
  const Batch batch = random_pairs(200);
  for (const char* residual : {"post-ln", "pre-ln", "deepnorm", "rezero", "sandwich", "admin", "hybridnorm"}) {
    for (const char* initialization : {"xavier-normal", "fairseq", "small-init"}) {
      const std::unique_ptr<Model> model = make_model(wide_model(residual, initialization), at::kFloat);
      std::vector<BranchPoint> measured;
      for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
        model->initialize(seed);
        const std::vector<BranchPoint> one = measure_branches(*model, {batch});
        measured.resize(one.size());
        for (size_t i = 0; i < one.size(); ++i) {
          measured[i].id = one[i].id;
          measured[i].ratio += one[i].ratio / kSeeds;
          measured[i].similarity += one[i].similarity / kSeeds;
        }
      }
      const std::vector<BranchPoint> predicted = predict_branches(*model, batch);
      ASSERT_EQ(measured.size(), 4U * 5);
      ASSERT_EQ(predicted.size(), measured.size());
      for (size_t i = 0; i < measured.size(); ++i) {
        const std::string where = fmt::format("{}, {}, {}", residual, initialization, to_string(measured[i].id));
        EXPECT_EQ(measured[i].id, predicted[i].id);
        EXPECT_NEAR(measured[i].similarity, predicted[i].similarity, 0.06) << where;
        if (measured[i].ratio > 1e-6) {
          EXPECT_NEAR(std::log(predicted[i].ratio / measured[i].ratio), 0, 0.15) << where;
        } else {
          EXPECT_LT(predicted[i].ratio, 1e-6) << where;  // ReZero's branches are multiplied by 0
        }
      }
    }
  }
}

/// In Post-LN, uniform attention adds s²·(ρ + (1 − ρ)/n) of the stream's mean square, the same to all tokens.
TEST(BranchRecursion, ValuesOfAnotherSizeFollowTheFormula) {
  ModelConfig config = wide_model("post-ln", "xavier-normal");
  config.initialization_scale.values = 0.4;
  config.initialization_scale.queries_keys = 0;
  const std::unique_ptr<Model> model = make_model(config, at::kFloat);
  model->initialize(5);
  const std::vector<BranchPoint> measured = measure_branches(*model, {random_pairs(200)});
  for (const BranchPoint& point : measured) {
    if (point.id.stack != StackKind::encoder || point.id.sub_layer != SubLayerKind::self_attention) continue;
    const double before = point.similarity_before, mean = before + (1 - before) / 11, square = 0.16;
    EXPECT_NEAR(point.ratio, std::sqrt(square * mean), 0.15 * point.ratio) << to_string(point.id);
    EXPECT_NEAR(point.similarity, (before + square * mean) / (1 + square * mean), 0.03) << to_string(point.id);
  }
  EXPECT_NEAR(predicted_cross_attention_gain(0.95, 0.16), 0.932, 1e-3);
  EXPECT_NEAR(predicted_cross_attention_gain(0.95), 0.716, 1e-3);
}

TEST(BranchRecursion, IsSilentWhereItDoesNotHold) {
  ModelConfig config = wide_model("pre-ln", "xavier-normal");
  config.attention = "delta";
  const std::unique_ptr<Model> model = make_model(config, at::kFloat);
  model->initialize(5);
  EXPECT_TRUE(predict_branches(*model, random_pairs(200)).empty());
  EXPECT_EQ(measure_branches(*model, {random_pairs(200)}).size(), 20U);
}

}  // namespace
}  // namespace plumb
