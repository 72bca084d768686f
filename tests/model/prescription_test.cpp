// What residual schemes prescribe for the rest of a model.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "plumb/model/decoder.h"
#include "plumb/model/encoder.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/nn/residual/residual.h"
#include "support/batches.h"
#include "support/gradcheck.h"
#include "support/small_model.h"

namespace plumb {
namespace {

ModelConfig prescribed_config(const std::string& kind, const std::string& residual) {
  ModelConfig config = test::small_model(kind, 1);
  config.residual = residual;
  return config;
}

std::set<std::string> names_of(const Model& model) {
  std::set<std::string> names;
  for (const Parameter& parameter : model.parameters().all()) names.insert(parameter.name);
  return names;
}

TEST(Prescription, HybridNormNormalizesQueriesKeysAndValuesEverywhere) {
  ModelConfig config = prescribed_config("encoder-decoder", "hybridnorm");
  for (const char* qk_norm : {"none", "rmsnorm"}) {
    config.qk_norm = qk_norm;
    const std::set<std::string> names = names_of(EncoderDecoder(config, at::kDouble));
    for (const char* attention :
         {"encoder.layers.0.self_attn", "decoder.layers.0.self_attn", "decoder.layers.0.multihead_attn"}) {
      for (const char* norm : {"q_norm", "k_norm", "v_norm"}) {
        EXPECT_TRUE(names.contains(fmt::format("{}.{}.weight", attention, norm))) << attention << norm;
        // model.qk_norm takes precedence: RMSNorm has no bias.
        const bool layer_norm = config.qk_norm == "none" || std::string(norm) == "v_norm";
        EXPECT_EQ(names.contains(fmt::format("{}.{}.bias", attention, norm)), layer_norm) << attention << norm;
      }
    }
  }
  config.norm = config.qk_norm = "none";
  EXPECT_FALSE(names_of(EncoderDecoder(config, at::kDouble)).contains("encoder.layers.0.self_attn.v_norm.weight"));
}

TEST(Prescription, TheNormalizedTransformerStartsWithUnitVectors) {
  for (const char* kind : {"encoder-decoder", "decoder", "encoder"}) {
    SCOPED_TRACE(kind);
    const std::unique_ptr<Model> model = make_model(prescribed_config(kind, "ngpt"), at::kDouble);
    model->initialize(1);
    for (const Parameter& parameter : model->parameters().all()) {
      const bool matrix = parameter.value.dim() == 2 && parameter.role != Role::constant;
      if (!matrix) continue;
      const bool writes = parameter.name.ends_with("out_proj.weight") || parameter.name.ends_with("linear2.weight");
      const Tensor lengths = parameter.value.detach().square().sum(writes ? 0 : 1).sqrt();
      EXPECT_LT((lengths - 1).abs().max().item<double>(), 1e-14) << parameter.name;
    }
    const std::set<std::string> names = names_of(*model);
    EXPECT_TRUE(names.contains("output.scale"));
    const std::string stack = std::string(kind) == "decoder" ? "decoder" : "encoder";
    const std::string scale = stack + ".layers.0.self_attn.qk_scale";
    ASSERT_TRUE(names.contains(scale));
    EXPECT_LT((model->parameters().at(scale).value.detach() - 1 / std::sqrt(8.0)).abs().max().item<double>(), 1e-15);
    EXPECT_FALSE(names.contains(stack + ".layers.0.self_attn.q_norm.weight"));
    EXPECT_FALSE(names.contains(stack + ".layers.0.norm1.weight"));
    EXPECT_FALSE(names.contains(stack + ".norm.weight"));
  }
}

TEST(Prescription, QueryKeyNormReplacesTheScalesOfTheNormalizedTransformer) {
  ModelConfig config = prescribed_config("decoder", "ngpt");
  config.qk_norm = "rmsnorm";
  const std::set<std::string> names = names_of(*make_model(config, at::kDouble));
  EXPECT_FALSE(names.contains("decoder.layers.0.self_attn.qk_scale"));
  EXPECT_TRUE(names.contains("decoder.layers.0.self_attn.q_norm.weight"));
}

TEST(Prescription, TheNormalizedTransformerScalesEachLogit) {
  ModelConfig config = prescribed_config("decoder", "ngpt");
  config.output_bias = true;
  config.share_embeddings = "none";
  Decoder model(config, at::kDouble);
  model.initialize(1);
  model.parameters().at("output.bias").value.detach().copy_(testing::random_tensor({12}, 2));
  const Tensor scales = model.parameters().at("output.scale").value.detach();
  EXPECT_LT((scales - 1 / std::sqrt(8.0)).abs().max().item<double>(), 1e-15);
  scales.copy_(testing::random_tensor({12}, 3));
  const Tensor hidden = testing::random_tensor({4, 8}, 4);
  const Tensor expected =
      at::matmul(hidden, model.parameters().at("output.weight").value.detach().t()) * (std::sqrt(8.0) * scales) +
      model.parameters().at("output.bias").value.detach();
  EXPECT_LT((model.logits(hidden).detach() - expected).abs().max().item<double>(), 1e-13);

  // Both ways of computing the loss use the same logits.
  Batch batch;
  append(batch, std::vector<int32_t>{4, 5}, std::vector<int32_t>{7, 8, 9, 4}, 0);
  ForwardContext first, second;
  const Loss fused = model.loss(batch, {0.1, {}, false}, first);
  const Loss plain = model.loss(batch, {0.1, {}, true}, second);
  EXPECT_NEAR(fused.value.item<double>(), plain.value.item<double>(), 1e-13);
  const std::vector<Tensor> values = model.parameters().values();
  EXPECT_LT((joined(gradients({fused.value}, values, {})) - joined(gradients({plain.value}, values, {})))
                .abs()
                .max()
                .item<double>(),
            1e-13);
}

}  // namespace
}  // namespace plumb
