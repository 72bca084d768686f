// Every residual scheme with every norm, every scheme with every attention and every norm with every attention: builds,
// trains, multiplies its Hessian by vectors, saves, loads and decodes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "plumb/analysis/curvature/hessian.h"
#include "plumb/decode/beam_search.h"
#include "plumb/io/safetensors.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/optim/clipping.h"
#include "plumb/optim/optimizer.h"
#include "support/batches.h"
#include "support/every_pair.h"
#include "support/gradcheck.h"
#include "support/paths.h"
#include "support/small_model.h"

namespace plumb {
namespace {

ModelConfig small(const std::string& residual, const std::string& norm, const std::string& attention) {
  ModelConfig config = test::small_model("encoder-decoder", residual == "mix-ln" ? 4 : 2);  // so that one is Post-LN
  config.residual = residual;
  config.norm = norm;
  config.attention = attention;
  return config;
}

Batch small_batch() {
  Batch batch;
  append(batch, std::vector<int32_t>{4, 5, 6, 7}, std::vector<int32_t>{8, 9, 4}, 0);
  append(batch, std::vector<int32_t>{9, 4}, std::vector<int32_t>{5, 5, 6, 11, 7}, 1);
  return batch;
}

struct Combination {
  std::string residual, norm, attention;

  [[nodiscard]] std::string name() const { return fmt::format("{}_{}_{}", residual, norm, attention); }
  [[nodiscard]] std::vector<std::string> traits() const {
    return {"residual " + residual, "norm " + norm, "attention " + attention};
  }
};

/// Excludes combinations that the literature does not use: the fast weights of 1991, whose sums are unbounded, without
/// a norm that bounds them for each token; and fast weights without residual connections, where the signal vanishes, or
/// without norms, where it explodes.
bool makes_sense(const Combination& given) {
  const auto& [residual, norm, attention] = given;
  if (attention == "softmax") return true;
  if (residual == "no-residual" || residual == "plain" || norm == "none") return false;
  return attention != "fwp-1991" || (norm != "batchnorm" && norm != "powernorm");
}

std::vector<Combination> all_combinations() {
  std::vector<Combination> all;
  for (const std::string& residual : residual_schemes().names()) {
    for (const std::string& norm : norms().names()) {
      for (const std::string& attention : attentions().names()) {
        if (const Combination each = {residual, norm, attention}; makes_sense(each)) all.push_back(each);
      }
    }
  }
  return all;
}

std::vector<Combination> selected_combinations() {
  return test::with_every_pair(all_combinations(), [](const Combination& each) { return each.traits(); });
}

TEST(CrossProductSelection, HasEveryPair) {
  const auto all = all_combinations(), selection = selected_combinations();
  for (const Combination& each : all) {
    const auto shares = [&](auto same) { return std::ranges::any_of(selection, same); };
    EXPECT_TRUE(shares([&](const auto& s) { return s.residual == each.residual && s.norm == each.norm; }))
        << each.name();
    EXPECT_TRUE(shares([&](const auto& s) { return s.residual == each.residual && s.attention == each.attention; }))
        << each.name();
    EXPECT_TRUE(shares([&](const auto& s) { return s.norm == each.norm && s.attention == each.attention; }))
        << each.name();
  }
  EXPECT_LT(selection.size(), all.size() / 4);
}

class CrossProduct : public ::testing::TestWithParam<Combination> {};

TEST_P(CrossProduct, TrainsCurvesSavesAndDecodes) {
  const auto& [residual, norm, attention] = GetParam();
  const ModelConfig config = small(residual, norm, attention);
  EncoderDecoder model(config, at::kDouble);
  model.initialize(3);
  const Batch batch = small_batch();

  const auto loss = [&](int64_t step) {
    ForwardContext context(0, 1, step);
    return model.loss(batch, {}, context);
  };
  const Loss before = loss(1);
  const std::vector<Tensor> gradient = gradients({before.value}, model.parameters().values(), {});
  const double length = global_norm(gradient);
  ASSERT_TRUE(std::isfinite(before.value.item<double>()));
  ASSERT_TRUE(std::isfinite(length));
  ASSERT_GT(length, 0);

  // H is symmetric: u·Hv = v·Hu.
  HessianOperator hessian(model, {batch});
  const Tensor u = testing::random_tensor({hessian.size()}, 1);
  const Tensor v = testing::random_tensor({hessian.size()}, 2);
  const double left = u.dot(hessian(v)).item<double>();
  const double right = v.dot(hessian(u)).item<double>();
  ASSERT_TRUE(std::isfinite(left));
  EXPECT_NEAR(left, right, 1e-9 * (1 + std::abs(left)));

  // A gradient step that is small relative to the curvature along it decreases the loss.
  const Tensor g = joined(gradient);
  const double curvature = std::abs(g.dot(hessian(g)).item<double>()) / (length * length);
  const auto optimizer = make_optimizer("sgd", model.parameters());
  optimizer->step(gradient, std::min(1e-3 / length, 0.01 / curvature), 1);
  if (norm != "powernorm") {  // whose gradient is an approximation
    EXPECT_LT(loss(2).value.item<double>(), before.value.item<double>());
  }

  // The saved and loaded model decodes like the original.
  const test::TemporaryDirectory directory;
  save_safetensors(directory / "model.safetensors", named_values(model.parameters()));
  EncoderDecoder loaded(config, at::kDouble);
  load_parameters(loaded.parameters(), load_safetensors(directory / "model.safetensors"), "file");
  DecodeOptions options;
  options.beam = 2;
  const std::vector<std::vector<int32_t>> sources = {{4, 5, 6}, {9}};
  EXPECT_EQ(beam_search(loaded, sources, options), beam_search(model, sources, options));
  ForwardContext context;
  ForwardContext again;
  EXPECT_EQ(loaded.loss(batch, {}, context).nll, model.loss(batch, {}, again).nll);
}

INSTANTIATE_TEST_SUITE_P(Model, CrossProduct, ::testing::ValuesIn(selected_combinations()), [](const auto& info) {
  std::string name = info.param.name();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace plumb
