// Initializations: variances, and the matrices that a kind scales.
#include "plumb/nn/init/init.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "plumb/model/encoder_decoder.h"
#include "plumb/optim/groups.h"

namespace plumb {
namespace {

ModelConfig config_of(const std::string& kind) {
  ModelConfig config;
  config.initialization = kind;
  config.d_model = 64;
  config.feed_forward = 96;
  config.heads = kind == "theory" ? 1 : 4;
  config.encoder_layers = 3;
  config.decoder_layers = 2;
  config.source_vocabulary = config.target_vocabulary = 50;
  config.share_embeddings = "none";
  return config;
}

EncoderDecoder model_of(const std::string& kind) {
  EncoderDecoder model(config_of(kind), at::kDouble);
  model.initialize(7);
  return model;
}

Tensor value(const EncoderDecoder& model, const std::string& name) {
  return model.parameters().at(name).value.detach();
}

/// The variance lies within five standard errors, s.e. = variance·√(2/n).
void expect_variance(const Tensor& matrix, double variance) {
  const double found = matrix.square().mean().item<double>();
  EXPECT_NEAR(found, variance, 5 * variance * std::sqrt(2.0 / static_cast<double>(matrix.numel())));
}

TEST(Initialization, Variances) {
  const char* first = "encoder.layers.1.linear1.weight";   // (96, 64)
  const char* second = "decoder.layers.1.linear2.weight";  // (64, 96)
  const char* stacked = "decoder.layers.0.multihead_attn.in_proj_weight";
  for (const char* kind : {"xavier-normal", "xavier-uniform"}) {
    const EncoderDecoder model = model_of(kind);
    expect_variance(value(model, first), 2.0 / 160);
    expect_variance(value(model, stacked), 2.0 / 128);
  }
  const EncoderDecoder he = model_of("he");
  expect_variance(value(he, first), 2.0 / 64);
  expect_variance(value(he, second), 2.0 / 96);
  expect_variance(value(he, stacked), 2.0 / 64);
  const EncoderDecoder recurrent = model_of("lstm");  // U(−b, b) has the variance b²/3
  expect_variance(value(recurrent, first), 1.0 / (3 * 96));
  expect_variance(value(recurrent, stacked), 1.0 / (3 * 64));
  expect_variance(value(recurrent, "tgt_embed.weight"), 0.01 / 3);
  const EncoderDecoder small = model_of("small-init");
  expect_variance(value(small, first), 2.0 / 320);
  expect_variance(value(small, second), 2.0 / 320);
  const EncoderDecoder mup = model_of("mup");
  expect_variance(value(mup, first), 1.0 / 64);
  expect_variance(value(mup, second), 1.0 / 96);
  expect_variance(value(mup, stacked), 1.0 / 64);
  expect_variance(value(mup, "tgt_embed.weight"), 1.0 / 64);
  expect_variance(value(mup, "output.weight"), 1.0 / (64 * 64));
  const EncoderDecoder gpt = model_of("gpt-2");
  expect_variance(value(gpt, first), 4e-4);
  expect_variance(value(gpt, stacked), 4e-4);
  expect_variance(value(gpt, second), 4e-4 / 6);                                        // 2 layers of 3 sub-layers
  expect_variance(value(gpt, "encoder.layers.0.self_attn.out_proj.weight"), 4e-4 / 6);  // 3 of 2
  expect_variance(value(gpt, "src_embed.weight"), 4e-4);
  expect_variance(value(gpt, "output.weight"), 4e-4);
}

/// Query, key and value are separate matrices, whatever their heights.
TEST(Initialization, StackedMatricesOfDifferentHeights) {
  ModelConfig config = config_of("xavier-normal");
  config.heads = 8;
  config.kv_heads = 2;
  config.head_size = 24;  // query 192, key and value 48 rows
  EncoderDecoder model(config, at::kDouble);
  model.initialize(7);
  const Tensor stacked = value(model, "decoder.layers.0.self_attn.in_proj_weight");
  ASSERT_EQ(stacked.size(0), 288);
  expect_variance(stacked.narrow(0, 0, 192), 2.0 / (192 + 64));
  expect_variance(stacked.narrow(0, 192, 48), 2.0 / (48 + 64));
  expect_variance(stacked.narrow(0, 240, 48), 2.0 / (48 + 64));
  expect_variance(value(model, "decoder.layers.0.self_attn.out_proj.weight"), 2.0 / (192 + 64));
  config.initialization = "deepnorm";
  EncoderDecoder scaled(config, at::kDouble);
  scaled.initialize(7);
  const Tensor ratio = value(scaled, "decoder.layers.0.self_attn.in_proj_weight") / stacked;
  EXPECT_NEAR(ratio.narrow(0, 0, 240).mean().item<double>(), 1, 1e-12);
  EXPECT_NEAR(ratio.narrow(0, 240, 48).mean().item<double>(), 1 / std::pow(24.0, 0.25), 1e-12);
}

/// The factor between a kind's matrix and Xavier's numbers from the same seed, which must be the same for all elements.
double multiple(const EncoderDecoder& scaled, const EncoderDecoder& xavier, const std::string& name,
                int64_t part = -1) {
  Tensor ratio = value(scaled, name) / value(xavier, name);
  if (part >= 0) ratio = ratio.chunk(3, 0)[static_cast<size_t>(part)];
  EXPECT_LT((ratio - ratio.mean()).abs().max().item<double>(), 1e-12) << name;
  return ratio.mean().item<double>();
}

void expect_multiples(const std::string& kind, double encoder, double decoder, double embedding_encoder,
                      double embedding_decoder) {
  const EncoderDecoder scaled = model_of(kind);
  const EncoderDecoder xavier = model_of("xavier-normal");
  for (const std::string stack : {"encoder", "decoder"}) {
    const double expected = stack == "encoder" ? encoder : decoder;
    const std::string layer = stack + ".layers.1.";
    EXPECT_NEAR(multiple(scaled, xavier, layer + "linear1.weight"), expected, 1e-12);
    EXPECT_NEAR(multiple(scaled, xavier, layer + "linear2.weight"), expected, 1e-12);
    EXPECT_NEAR(multiple(scaled, xavier, layer + "self_attn.out_proj.weight"), expected, 1e-12);
    for (int64_t part = 0; part < 3; ++part) {
      EXPECT_NEAR(multiple(scaled, xavier, layer + "self_attn.in_proj_weight", part), part == 2 ? expected : 1, 1e-12);
    }
  }
  EXPECT_NEAR(multiple(scaled, xavier, "src_embed.weight"), embedding_encoder, 1e-12);
  EXPECT_NEAR(multiple(scaled, xavier, "tgt_embed.weight"), embedding_decoder, 1e-12);
  EXPECT_NEAR(multiple(scaled, xavier, "output.weight"), 1, 1e-12);
}

TEST(Initialization, DeepnormAndTFixupScaleWhatTheSignalPasses) {
  expect_multiples("deepnorm", 0.87 / std::pow(81.0 * 2, 1.0 / 16), 1 / std::pow(24.0, 0.25), 1, 1);
  const double encoder = 0.67 / std::pow(3.0, 0.25);
  const double decoder = 1 / std::pow(18.0, 0.25);
  // Embeddings of both sides: (9·layers)^(−1/4), with 3 layers in the encoder and 2 in the decoder.
  expect_multiples("t-fixup", encoder, decoder, 1 / std::pow(27.0, 0.25), decoder);
}

/// Wang et al. 2022, table 2: 3 encoder and 2 decoder layers.
TEST(Initialization, OfTheEncoderMayBeAnother) {
  ModelConfig config = config_of("xavier-normal");
  const EncoderDecoder xavier = model_of("xavier-normal");
  const auto expect = [&](const std::string& encoder, const std::string& decoder, double in_encoder,
                          double in_decoder) {
    config.encoder_initialization = encoder;
    config.initialization = decoder;
    EncoderDecoder mixed(config, at::kDouble);
    mixed.initialize(7);
    for (const std::string matrix : {"linear1.weight", "self_attn.out_proj.weight"}) {
      EXPECT_NEAR(multiple(mixed, xavier, "encoder.layers.2." + matrix), in_encoder, 1e-12);
      EXPECT_NEAR(multiple(mixed, xavier, "decoder.layers.0." + matrix), in_decoder, 1e-12);
    }
    EXPECT_NEAR(multiple(mixed, xavier, "src_embed.weight"), 1, 1e-12);
  };
  expect("deepnorm", "xavier-normal", 0.87 / std::pow(81.0 * 2, 1.0 / 16), 1);
  expect("xavier-normal", "deepnorm", 1, 1 / std::pow(24.0, 0.25));
}

TEST(Initialization, TFixupCountsAnEmbeddingOfBothSidesAsTheEncoders) {
  ModelConfig config = config_of("t-fixup");
  config.share_embeddings = "all";
  EncoderDecoder shared(config, at::kDouble);
  shared.initialize(7);
  for (const Parameter& parameter : shared.parameters().all()) {
    if (parameter.role == Role::embedding) {
      expect_variance(parameter.value.detach(), 1.0 / 64 / std::sqrt(27.0));
    }
  }
}

/// fairseq's reset_parameters: gain 1/√2 for queries, keys and values, also of cross-attention.
TEST(Initialization, FairseqDividesQueriesKeysAndValues) {
  const EncoderDecoder scaled = model_of("fairseq");
  const EncoderDecoder xavier = model_of("xavier-uniform");
  for (const std::string attention : {"encoder.layers.0.self_attn", "decoder.layers.1.multihead_attn"}) {
    for (int64_t part = 0; part < 3; ++part)
      EXPECT_NEAR(multiple(scaled, xavier, attention + ".in_proj_weight", part), std::sqrt(0.5), 1e-12);
    EXPECT_NEAR(multiple(scaled, xavier, attention + ".out_proj.weight"), 1, 1e-12);
  }
  EXPECT_NEAR(multiple(scaled, xavier, "encoder.layers.0.linear1.weight"), 1, 1e-12);
}

TEST(Initialization, ScalesMultiplyEachKindOfMatrix) {
  ModelConfig config = config_of("small-init");
  EncoderDecoder usual(config, at::kDouble);
  usual.initialize(7);
  config.initialization_scale = {.queries_keys = 2, .values = 3, .outputs = 5, .feed_forward = 7};
  EncoderDecoder scaled(config, at::kDouble);
  scaled.initialize(7);
  for (const std::string layer : {"encoder.layers.2.", "decoder.layers.0."}) {
    const std::array<double, 3> expected = {2, 2, 3};
    for (int64_t part = 0; part < 3; ++part)
      EXPECT_NEAR(multiple(scaled, usual, layer + "self_attn.in_proj_weight", part),
                  expected[static_cast<size_t>(part)], 1e-12);
    EXPECT_NEAR(multiple(scaled, usual, layer + "self_attn.out_proj.weight"), 5, 1e-12);
    EXPECT_NEAR(multiple(scaled, usual, layer + "linear1.weight"), 7, 1e-12);
    EXPECT_NEAR(multiple(scaled, usual, layer + "linear2.weight"), 7, 1e-12);
  }
  EXPECT_NEAR(multiple(scaled, usual, "output.weight"), 1, 1e-12);
  EXPECT_NEAR(multiple(scaled, usual, "src_embed.weight"), 1, 1e-12);
}

/// The width of the stream counts, not the smaller dimension: β has one row per head.
TEST(Initialization, SmallInitOfMatricesWithFewRows) {
  ModelConfig config = config_of("small-init");
  config.attention = "delta";
  config.kv_heads = 1;
  EncoderDecoder model(config, at::kDouble);
  model.initialize(7);
  expect_variance(value(model, "encoder.layers.0.self_attn.beta.weight"), 2.0 / 320);
  expect_variance(value(model, "encoder.layers.0.self_attn.in_proj_weight"), 2.0 / 320);
  expect_variance(value(model, "encoder.layers.0.self_attn.out_proj.weight"), 2.0 / 320);
}

TEST(Initialization, ConstantsAndBuffers) {
  ModelConfig config = config_of("xavier-normal");
  config.residual = "layerscale";
  config.norm = "batchnorm";
  EncoderDecoder model(config, at::kDouble);
  for (const Parameter& buffer : model.parameters().buffers()) buffer.value.detach().fill_(9);
  model.initialize(1);
  EXPECT_EQ(value(model, "encoder.layers.0.layer_scale1.weight").min().item<double>(), 0.1);
  for (const Parameter& buffer : model.parameters().buffers()) {
    EXPECT_EQ(buffer.value.max().item<double>(), buffer.name.ends_with("running_var") ? 1 : 0) << buffer.name;
  }
}

TEST(Initialization, ProfilesModelsOfOnePosition) {
  for (const char* kind : {"encoder-decoder", "decoder", "encoder"}) {
    ModelConfig config = config_of("xavier-normal");
    config.kind = kind;
    config.residual = "admin";
    config.positions = "learned";
    config.max_positions = 1;
    if (std::string(kind) != "encoder-decoder") config.labels = 2;
    EXPECT_NO_THROW(make_model(config, at::kDouble)->initialize(1)) << kind;
  }
}

TEST(Initialization, ProfilesAdmin) {
  ModelConfig config = config_of("xavier-normal");
  config.residual = "admin";
  EncoderDecoder model(config, at::kDouble);
  model.initialize(1);
  double before = 0;
  for (int64_t layer = 0; layer < 2; ++layer) {
    for (const char* omega : {"omega1", "omega2", "omega3"}) {
      const Tensor found = value(model, "decoder.layers." + std::to_string(layer) + '.' + omega + ".weight");
      EXPECT_EQ(found.min().item<double>(), found.max().item<double>());
      EXPECT_GT(found.min().item<double>(), before);  // grows from sub-layer to sub-layer
      before = found.min().item<double>();
      if (layer == 0 && std::string(omega) == "omega1") {
        EXPECT_EQ(before, 1);
      }
    }
  }
}

TEST(Initialization, ProfilesAdminInADecoderAlone) {
  ModelConfig config = config_of("xavier-normal");
  config.residual = "admin";
  config.encoder_residual = "post-ln";
  EncoderDecoder model(config, at::kDouble);
  model.initialize(1);
  EXPECT_EQ(value(model, "decoder.layers.0.omega1.weight").max().item<double>(), 1);
  EXPECT_GT(value(model, "decoder.layers.0.omega2.weight").min().item<double>(), 1);
}

/// The values of all parameters whose name ends like this.
std::vector<double> values_of(const Model& model, const std::string& ending) {
  std::vector<double> all;
  for (const Parameter& each : model.parameters().all()) {
    if (!each.name.ends_with(ending)) continue;
    const Tensor value = each.value.detach().contiguous().view({-1});
    for (int64_t i = 0; i < value.numel(); ++i) all.push_back(value[i].item<double>());
  }
  return all;
}

/// Within five standard errors of a uniform distribution's mean, and covering it.
void expect_uniform(const std::vector<double>& values, double low, double high) {
  double sum = 0, least = high, most = low;
  for (const double value : values) {
    sum += value;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  const auto n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, (low + high) / 2, 5 * (high - low) / std::sqrt(12 * n));
  EXPECT_GE(least, low);
  EXPECT_LE(most, high);
  EXPECT_LT(least, low + 0.05 * (high - low));  // 160 draws all miss a twentieth with probability 3e-4
  EXPECT_GT(most, high - 0.05 * (high - low));
}

TEST(Initialization, GatedDeltaDrawsHowFastItsHeadsForget) {
  for (const std::string kind : {"gated-delta", "kda"}) {
    SCOPED_TRACE(kind);
    ModelConfig config = config_of("xavier-normal");
    config.attention = kind;
    config.positions = "none";
    config.heads = 20;
    config.head_size = 2;
    EncoderDecoder model(config, at::kDouble);
    model.initialize(7);
    std::vector<double> rates = values_of(model, ".decay.log_rate"), steps = values_of(model, ".decay.bias");
    ASSERT_EQ(rates.size(), 7U * 20U);  // three attentions in the encoder, two and two in the decoder
    ASSERT_EQ(steps.size(), rates.size() * (kind == "kda" ? 2 : 1));
    for (double& rate : rates) rate = std::exp(rate);
    for (double& step : steps) step = std::log(std::log1p(std::exp(step)));
    expect_uniform(rates, kind == "kda" ? 1 : 0, 16);
    expect_uniform(steps, std::log(0.001) - 1e-9, std::log(0.1) + 1e-9);
    // Heads and layers differ, and so do seeds; a seed gives the same values again.
    const Tensor first = value(model, "encoder.layers.0.self_attn.decay.log_rate").clone();
    EXPECT_GT(first.std().item<double>(), 0.1);
    EXPECT_FALSE(at::equal(first, value(model, "encoder.layers.1.self_attn.decay.log_rate")));
    model.initialize(8);
    EXPECT_FALSE(at::equal(first, value(model, "encoder.layers.0.self_attn.decay.log_rate")));
    model.initialize(7);
    EXPECT_TRUE(at::equal(first, value(model, "encoder.layers.0.self_attn.decay.log_rate")));
    // Their authors exempt both from weight decay.
    const std::vector<ParameterSettings> settings = parameter_settings(model.parameters(), {}, 0.1);
    for (size_t i = 0; i < settings.size(); ++i) {
      const std::string& name = model.parameters().all()[i].name;
      if (name.ends_with(".decay.log_rate") || name.ends_with(".decay.bias")) {
        EXPECT_EQ(settings[i].weight_decay, 0) << name;
      }
      if (name.ends_with(".decay.weight")) {
        EXPECT_EQ(settings[i].weight_decay, 0.1) << name;
      }
    }
  }
}

}  // namespace
}  // namespace plumb
