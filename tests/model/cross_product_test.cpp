// Every residual scheme with every norm: builds, trains, multiplies its Hessian with vectors, saves, loads and decodes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "plumb/analysis/curvature/hessian.h"
#include "plumb/decode/beam_search.h"
#include "plumb/model/safetensors.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/optim/optimizer.h"
#include "support/gradcheck.h"
#include "support/paths.h"

namespace plumb {
namespace {

ModelConfig small(const std::string& residual, const std::string& norm) {
  ModelConfig config;
  config.residual = residual;
  config.norm = norm;
  config.d_model = 8;
  config.feed_forward = 12;
  config.heads = 2;
  config.encoder_layers = config.decoder_layers = residual == "mix-ln" ? 4 : 2;  // so that one is Post-LN
  config.source_vocabulary = config.target_vocabulary = 12;
  return config;
}

Batch small_batch() {
  Batch batch;
  append(batch, std::vector<int32_t>{4, 5, 6, 7}, std::vector<int32_t>{8, 9, 4}, 0);
  append(batch, std::vector<int32_t>{9, 4}, std::vector<int32_t>{5, 5, 6, 11, 7}, 1);
  return batch;
}

class CrossProduct : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(CrossProduct, TrainsCurvesSavesAndDecodes) {
  const auto& [residual, norm] = GetParam();
  const ModelConfig config = small(residual, norm);
  EncoderDecoder model(config, at::kDouble);
  model.initialise(3);
  const Batch batch = small_batch();

  // A few steps of training: the loss is finite and falls.
  const auto optimizer = optimizers().at("sgd").make(model.parameters(), {});
  std::vector<double> losses;
  for (int64_t step = 1; step <= 8; ++step) {
    ForwardContext context(0, 1, step);
    const Loss loss = model.loss(batch, {}, context);
    losses.push_back(loss.value.item<double>());
    const std::vector<Tensor> gradient = gradients({loss.value}, model.parameters().values(), {});
    const double length = global_norm(gradient);
    ASSERT_TRUE(std::isfinite(length));
    optimizer->step(gradient, 0.01, clip_scale(length, 1));
  }
  ASSERT_TRUE(std::isfinite(losses.back()));
  if (norm != "powernorm") {  // whose gradient is an approximation: no promise for a few steps
    EXPECT_LT(losses.back(), losses.front());
  }

  // H is symmetric: u·Hv = v·Hu.
  HessianOperator hessian(model, {batch});
  const Tensor u = testing::random_tensor({hessian.size()}, 1);
  const Tensor v = testing::random_tensor({hessian.size()}, 2);
  const double left = u.dot(hessian(v)).item<double>();
  const double right = v.dot(hessian(u)).item<double>();
  ASSERT_TRUE(std::isfinite(left));
  EXPECT_NEAR(left, right, 1e-9 * (1 + std::abs(left)));

  // What is saved and loaded decodes as the original does.
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

INSTANTIATE_TEST_SUITE_P(Model, CrossProduct,
                         ::testing::Combine(::testing::ValuesIn(residual_schemes().names()),
                                            ::testing::ValuesIn(norms().names())),
                         [](const auto& info) {
                           std::string name = fmt::format("{}_{}", std::get<0>(info.param), std::get<1>(info.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace plumb
