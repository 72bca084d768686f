// Training steps on another device match those on the CPU, for every component of a model.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "devices.h"
#include "optim/options.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/nn/feed_forward/feed_forward.h"
#include "plumb/nn/init/init.h"
#include "plumb/nn/norm/norm.h"
#include "plumb/nn/pooling.h"
#include "plumb/nn/position/position.h"
#include "plumb/nn/residual/residual.h"
#include "plumb/optim/clipping.h"
#include "plumb/optim/optimizer.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

using test::batch_for;
using test::expect_close;
using test::on;
using test::small_model;

class StepsOnDevices : public test::OnEachDevice {};
INSTANTIATE_ON_DEVICES(StepsOnDevices);

/// Loss, gradient and parameters after a step of training with dropout.
struct Step {
  double loss = 0;
  Tensor gradient, after;
};

Step one_step(const ModelConfig& config, const std::string& optimizer_name) {
  const std::unique_ptr<Model> model = make_model(config, at::kDouble);
  model->initialize(3);
  const Parameters& parameters = model->parameters();
  // If a gradient is only rounding, Lion's and Adafactor's steps are as long as elsewhere, and SOAP's rotations are
  // arbitrary. So Lion and SOAP take a single step, and Adafactor adds more than rounding to its squares.
  const auto optimizer = make_optimizer(optimizer_name, parameters, test::options("[train.adafactor]\neps = 1e-12\n"));
  const bool one = optimizer_name == "lion" || optimizer_name == "soap";
  Step step;
  for (int64_t number = 1; number <= (one ? 1 : 2); ++number) {
    ForwardContext context(0.2, 7, number);
    const Loss loss = model->loss(batch_for(config.kind), {.label_smoothing = 0.1}, context);
    const std::vector<Tensor> gradient = gradients({loss.value}, parameters.values(), {});
    optimizer->step(gradient, 1e-3, clip_scale(global_norm(gradient), 0.5));
    step.loss = loss.value.item<double>();
    step.gradient = joined(gradient).cpu();
  }
  step.after = parameters.flat().cpu().clone();
  return step;
}

void expect_same_step(const at::Device& device, const ModelConfig& config, const std::string& optimizer) {
  const std::string what = fmt::format("{}, {}, {}, {}, {}, {}, {}", config.kind, config.residual, config.norm,
                                       config.attention, config.positions, config.activation, optimizer);
  SCOPED_TRACE(what);
  Step found;
  try {
    found = on(device, [&] { return one_step(config, optimizer); });
  } catch (const c10::Error& error) {
    FAIL() << what << ": " << error.what_without_backtrace();
  }
  const Step expected = one_step(config, optimizer);
  EXPECT_NEAR(found.loss, expected.loss, 1e-10 * std::abs(expected.loss));
  const double scale = expected.gradient.abs().max().item<double>();
  expect_close(found.gradient / scale, expected.gradient / scale, 1e-8, "gradient");
  // If a gradient is only rounding, so is its sign, Lion's step: those parameters are not compared.
  const Tensor moved = expected.gradient.abs() > 1e-9 * scale;
  expect_close(found.after.masked_select(moved), expected.after.masked_select(moved), 1e-7, "parameters");
}

template <typename Names>
const std::string& nth(const Names& names, size_t i) {
  return names[i % names.size()];
}

TEST_P(StepsOnDevices, SoapRotatesWhatHasNoNullSpace) {
  const auto trained = [] {
    Parameters parameters(at::kDouble);
    parameters.add("w", {5, 5}, Role::weight);
    parameters.allocate();
    const auto optimizer = make_optimizer("soap", parameters, test::options("[train.soap]\nevery = 3\n"));
    for (uint64_t t = 1; t <= 8; ++t) optimizer->step({testing::random_tensor({5, 5}, t).to(parameters.device())}, 0.1);
    return parameters.flat().cpu();
  };
  expect_close(on(GetParam(), trained), trained(), 1e-9, "parameters");
}

TEST_P(StepsOnDevices, EveryAttentionTrainsWithEveryPositionEncoding) {
  const auto optimizer_names = optimizers().names();
  const auto activations = feed_forwards().names();
  const std::vector<std::string> kinds = {"encoder-decoder", "decoder", "encoder"};
  size_t i = 0;
  for (const std::string& attention : attentions().names()) {
    for (const std::string& position : positions().names()) {
      ModelConfig config = small_model(nth(kinds, i), 1);
      config.attention = attention;
      config.positions = position;
      config.activation = nth(activations, i);
      const bool biases = position == "alibi" || position == "t5" || position == "transformer-xl";
      if (biases && attention != "softmax") continue;
      expect_same_step(GetParam(), config, nth(optimizer_names, i++));
    }
  }
}

TEST_P(StepsOnDevices, EveryResidualSchemeTrainsWithEveryNorm) {
  const auto optimizer_names = optimizers().names();
  const auto initializations_known = initializations().names();
  size_t i = 0;
  for (const std::string& residual : residual_schemes().names()) {
    for (const std::string& norm : norms().names()) {
      ModelConfig config = small_model(i % 2 == 0 ? "encoder-decoder" : "decoder", 1);
      config.residual = residual;
      config.norm = norm;
      config.initialization = nth(initializations_known, i);
      if (config.initialization == "theory") config.heads = 1;
      expect_same_step(GetParam(), config, nth(optimizer_names, i++));
    }
  }
}

TEST_P(StepsOnDevices, TheRecurrentModelTrains) { expect_same_step(GetParam(), small_model("awd-lstm"), "adam"); }

TEST_P(StepsOnDevices, WhatElseABlockMayHave) {
  ModelConfig config = small_model("encoder-decoder", 1);
  config.kv_heads = 1;
  config.qk_norm = "rmsnorm";
  config.value_residual = config.attention_gate = config.parallel = config.embedding_norm = config.output_bias = true;
  config.segments = 2;
  config.share_embeddings = "all";
  expect_same_step(GetParam(), config, "adam");
  for (const std::string& pooling : poolings().names()) {
    config = small_model("encoder", 1);
    config.pooling = pooling;
    if (pooling == "none") continue;
    config.pooler = true;
    expect_same_step(GetParam(), config, "sgd");
  }
}

}  // namespace
}  // namespace plumb
