// Representation collapse: the measurement compared with plain loops, the prediction with a simulation of its
// assumption.
#include "plumb/analysis/collapse.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plumb/model/encoder_decoder.h"
#include "support/batches.h"
#include "support/gradcheck.h"
#include "support/small_model.h"

namespace plumb {
namespace {

using testing::random_tensor;

TEST(Collapse, EffectiveRank) {
  EXPECT_NEAR(effective_rank(at::ones({5, 3}, at::kDouble)), 0, 1e-12);                              // one point
  EXPECT_NEAR(effective_rank(at::arange(5, at::kDouble).unsqueeze(1) * at::ones({1, 3})), 1, 1e-9);  // a line
  // Four corners of a square, in the first two of three features: two equal singular values.
  const Tensor square = at::tensor({1., 1., 0., 1., -1., 0., -1., 1., 0., -1., -1., 0.}, at::kDouble).view({4, 3});
  EXPECT_NEAR(effective_rank(square), 2, 1e-12);
  // Singular values 2 and 1: p = 2/3, 1/3.
  const double entropy = -(2.0 / 3) * std::log(2.0 / 3) - (1.0 / 3) * std::log(1.0 / 3);
  const Tensor stretched = square * at::tensor({2., 1., 1.}, at::kDouble);
  EXPECT_NEAR(effective_rank(stretched), std::exp(entropy), 1e-12);
}

TEST(Collapse, PredictionIsThatOfASumOfIndependentTerms) {
  constexpr int64_t kCount = 400000;
  for (const int64_t k : {1, 4}) {
    Tensor before = at::zeros({kCount}, at::kDouble);
    for (int64_t i = 0; i < k; ++i) before = before + random_tensor({kCount}, 10 + static_cast<uint64_t>(i));
    const Tensor after = before + random_tensor({kCount}, 99);
    const Tensor change = after / std::sqrt(static_cast<double>(k + 1)) - before / std::sqrt(static_cast<double>(k));
    EXPECT_NEAR(predicted_pre_ln_change(k), change.abs().mean().item<double>(), 0.003) << k;
  }
  EXPECT_NEAR(predicted_pre_ln_change(400) / predicted_pre_ln_change(100), 0.5, 0.01);  // O(1/√k)
}

TEST(Collapse, MeasuresTheStreamOfEverySubLayer) {
  EncoderDecoder model(test::small_model("encoder-decoder"), at::kDouble);
  model.initialize(1);
  std::vector<Batch> batches(2);
  append(batches[0], std::vector<int32_t>{4, 5, 6}, std::vector<int32_t>{7, 8}, 0);
  append(batches[1], std::vector<int32_t>{9, 10}, std::vector<int32_t>{11, 5, 6}, 1);
  const CollapseProfile profile = measure_collapse(model, batches);
  ASSERT_EQ(profile.encoder.size(), 4U);
  ASSERT_EQ(profile.decoder.size(), 6U);
  EXPECT_EQ(profile.encoder[3].id, (LayerId{StackKind::encoder, 1, SubLayerKind::feed_forward}));

  // The third sub-layer of the encoder, in plain loops.
  std::vector<Tensor> before;
  std::vector<Tensor> after;
  ForwardContext context(Pass::measurement);
  context.watch([&](const ActivationPoint& point, const Tensor& x) {
    if (to_string(point) == "encoder.layers.0.feed_forward.stream") before.push_back(x.detach());
    if (to_string(point) == "encoder.layers.1.self_attention.stream") after.push_back(x.detach());
  });
  double change = 0;
  double cosine = 0;
  double square = 0;
  int64_t tokens = 0;
  for (const Batch& batch : batches) model.encode(batch.source, batch.source_layout, context);
  for (size_t b = 0; b < batches.size(); ++b) {
    for (int64_t t = 0; t < before[b].size(0); ++t, ++tokens) {
      const auto normalized = [](const Tensor& x) { return (x - x.mean()) / x.std(/*unbiased=*/false); };
      const Tensor p = normalized(before[b][t]);
      const Tensor q = normalized(after[b][t]);
      change += (q - p).abs().mean().item<double>();
      cosine += (p.dot(q) / (p.norm() * q.norm())).item<double>();
      square += after[b][t].square().mean().item<double>();
    }
  }
  EXPECT_EQ(tokens, 7);
  const auto count = static_cast<double>(tokens);
  EXPECT_NEAR(profile.encoder[2].change, change / count, 1e-9);
  EXPECT_NEAR(profile.encoder[2].similarity, cosine / count, 1e-9);
  EXPECT_NEAR(profile.encoder[2].mean_square, square / count, 1e-9);
}

std::unique_ptr<Model> decoder_of(const std::string& residual) {
  ModelConfig config = test::small_model("decoder", 3);
  config.residual = residual;
  std::unique_ptr<Model> model = make_model(config, at::kDouble);
  model->initialize(1);
  return model;
}

TEST(Collapse, OfResiDualIsThatOfBothStreamsTogether) {
  const std::unique_ptr<Model> model = decoder_of("residual-dual");
  Batch batch;
  append_running_text(batch, std::vector<int32_t>{4, 5, 6, 7, 8}, {}, 0);
  // The plain sum r of the input and all outputs, and the stream x, combined after every sub-layer.
  Tensor r;
  std::vector<Tensor> together;
  std::vector<Tensor> streams;
  ForwardContext context(Pass::measurement);
  context.watch([&](const ActivationPoint& point, const Tensor& x) {
    if (to_string(point) == "decoder.input") {
      r = x.detach();
      together.push_back(r);
      streams.push_back(r);
    }
    if (point.point == Point::output) r = r + x.detach();
    if (point.point != Point::stream) return;
    streams.push_back(x.detach());
    const Tensor centered = r - r.mean(1, true);
    together.push_back(x.detach() + centered / (centered.square().mean(1, true) + 1e-7).sqrt());
  });
  model->states(batch, context);
  const auto changes = [](const std::vector<Tensor>& x) {
    std::vector<double> list;
    const auto normalized = [](const Tensor& a) {
      return (a - a.mean(1, true)) / a.std(std::vector<int64_t>{1}, /*unbiased=*/false, /*keepdim=*/true);
    };
    for (size_t k = 1; k < x.size(); ++k)
      list.push_back((normalized(x[k]) - normalized(x[k - 1])).abs().mean().item<double>());
    return list;
  };
  const CollapseProfile profile = measure_collapse(*model, {batch, batch});
  ASSERT_EQ(profile.decoder.size(), 6U);
  for (size_t k = 0; k < 6; ++k) {
    EXPECT_NEAR(profile.decoder[k].change, changes(together)[k], 1e-9) << k;
    // The stream of Post-LN alone differs, except after the first sub-layer, where r and x have the same direction.
    if (k > 0) {
      EXPECT_GT(std::abs(profile.decoder[k].change - changes(streams)[k]), 1e-3) << k;
    }
  }
}

TEST(Collapse, OfAStackByItself) {
  const std::unique_ptr<Model> model = decoder_of("post-ln");
  Batch batch;
  append_running_text(batch, std::vector<int32_t>{4, 5, 6, 7, 8}, {}, 0);
  const CollapseProfile profile = measure_collapse(*model, {batch});
  EXPECT_TRUE(profile.encoder.empty());
  ASSERT_EQ(profile.decoder.size(), 6U);
  EXPECT_EQ(profile.decoder[5].depth, 6);
  EXPECT_GT(profile.decoder[5].change, 0.1);
}

}  // namespace
}  // namespace plumb
