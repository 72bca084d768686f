// Differences put into one of two models, each to be found where it was put.
#include "plumb/analysis/model_difference.h"

#include <gtest/gtest.h>

#include "plumb/nn/layer_id.h"
#include "plumb/run/config.h"
#include "support/errors.h"

namespace plumb {
namespace {

using Change = void (*)(Model&);

/// One injected difference, of a setting or of a parameter, and where it shows first.
struct Injected {
  std::string name;
  bool translates = false;
  std::string setting;       // changed in the second model
  std::string parameter;     // changed in the second model
  std::string place;         // expected
  bool computation = false;  // no parameter differs at that place
};

ModelConfig config_of(bool translates, const std::string& setting) {
  std::string toml =
      "[model]\nd_model = 16\nheads = 2\nfeed_forward = 24\nencoder_layers = 2\ndecoder_layers = 3\n"
      "source_vocabulary = 20\ntarget_vocabulary = 20\nmax_positions = 32\nshare_embeddings = \"none\"\n";
  toml += translates ? "kind = \"encoder-decoder\"\n" : "kind = \"decoder\"\n";
  Config config = Config::from_string(toml, "test");
  if (!setting.empty()) config.set(setting);
  return read_run_config(config, {}).model;
}

std::unique_ptr<Model> model_of(const ModelConfig& config) {
  auto model = make_model(config, at::kDouble);
  model->initialize(1);
  return model;
}

/// Gives the second model the parameters of the first, where it has them.
void share(const Model& first, Model& second) {
  const at::NoGradGuard no_graph;
  for (const Parameter& parameter : second.parameters().all()) {
    const Parameter* other = first.parameters().find(parameter.name);
    if (other != nullptr && other->value.sizes() == parameter.value.sizes()) parameter.value.copy_(other->value);
  }
}

std::vector<Injected> injected() {
  return {
      {.name = "WeightOfFeedForward",
       .parameter = "decoder.layers.1.linear1.weight",
       .place = "decoder.layers.1.feed_forward.output"},
      {.name = "BiasOfFeedForward",
       .parameter = "decoder.layers.0.linear2.bias",
       .place = "decoder.layers.0.feed_forward.output"},
      {.name = "ProjectionOfQueries",
       .parameter = "decoder.layers.2.self_attn.in_proj_weight",
       .place = "decoder.layers.2.self_attention.output"},
      {.name = "TransposedOutputProjection",
       .parameter = "decoder.layers.1.self_attn.out_proj.weight",
       .place = "decoder.layers.1.self_attention.output"},
      {.name = "Embedding", .parameter = "tgt_embed.weight", .place = "decoder.input"},
      {.name = "LastNorm", .parameter = "decoder.norm.weight", .place = "decoder.result"},
      {.name = "NormBeforeFeedForward",
       .parameter = "decoder.layers.1.norm2.weight",
       .place = "decoder.layers.1.feed_forward.input"},
      {.name = "OutputMatrix", .parameter = "output.weight", .place = "logits"},
      {.name = "Encoder",
       .translates = true,
       .parameter = "encoder.layers.1.linear2.weight",
       .place = "encoder.layers.1.feed_forward.output"},
      {.name = "SourceEmbedding", .translates = true, .parameter = "src_embed.weight", .place = "encoder.input"},
      {.name = "CrossAttention",
       .translates = true,
       .parameter = "decoder.layers.1.multihead_attn.out_proj.bias",
       .place = "decoder.layers.1.cross_attention.output"},
      {.name = "Eps",
       .setting = "model.norm_eps=1e-3",
       .place = "decoder.layers.0.self_attention.input",
       .computation = true},
      {.name = "Activation",
       .setting = "model.activation=\"gelu\"",
       .place = "decoder.layers.0.feed_forward.output",
       .computation = true},
      {.name = "Positions", .setting = "model.positions=\"none\"", .place = "decoder.input", .computation = true},
      {.name = "RotaryPositions",
       .setting = "model.positions=\"rotary\"",
       .place = "decoder.input",
       .computation = true},
      {.name = "Heads",
       .setting = "model.heads=4",
       .place = "decoder.layers.0.self_attention.output",
       .computation = true},
      {.name = "EmbeddingScale",
       .setting = "model.embedding_factor=1.0",
       .place = "decoder.input",
       .computation = true},
      {.name = "Placement",
       .setting = "model.residual=\"post-ln\"",
       .place = "decoder.layers.0.self_attention.input",
       .computation = true},
      {.name = "KindOfNorm", .setting = "model.norm=\"rmsnorm\"", .place = "decoder.layers.0.self_attention.input"},
      {.name = "QueryKeyNorm",
       .setting = "model.qk_norm=\"layernorm\"",
       .place = "decoder.layers.0.self_attention.output"},
      {.name = "SharedKeys", .setting = "model.kv_heads=1", .place = "decoder.layers.0.self_attention.output"},
      {.name = "DroppedBias",
       .setting = "model.attention_bias=\"none\"",
       .place = "decoder.layers.0.self_attention.output"},
      {.name = "OutputBias", .setting = "model.output_bias=true", .parameter = "output.bias", .place = "logits"},
      {.name = "CenteredMemory",
       .translates = true,
       .setting = "model.center_memory=true",
       .place = "encoder.result",
       .computation = true},
  };
}

class ModelDifferences : public ::testing::TestWithParam<Injected> {};

TEST_P(ModelDifferences, AreFoundWhereTheyArePut) {
  const Injected& one = GetParam();
  const ModelConfig config = config_of(one.translates, "");
  const ModelConfig changed = config_of(one.translates, one.setting);
  const auto first = model_of(config);
  const auto second = model_of(changed);
  {
    // Biases that are 0 would hide that they are dropped.
    const at::NoGradGuard no_graph;
    for (const Parameter& parameter : first->parameters().all()) parameter.value.add_(0.01);
  }
  share(*first, *second);
  if (!one.parameter.empty()) {
    const at::NoGradGuard no_graph;
    Tensor value = second->parameters().at(one.parameter).value;
    if (one.name.starts_with("Transposed")) {
      value.copy_(value.t().clone());
    } else {
      value.view({-1}).slice(0, 0, 3).add_(0.01);
    }
  }
  const ModelDifference found = compare_computations(*first, *second, common_batch(config, changed, 1));
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->place, one.place);
  EXPECT_EQ(found.first->parameters.empty(), one.computation) << ::testing::PrintToString(found.first->parameters);
  if (!one.setting.empty()) return;
  EXPECT_EQ(found.first->parameters, std::vector<std::string>{one.parameter});
}

INSTANTIATE_TEST_SUITE_P(Injected, ModelDifferences, ::testing::ValuesIn(injected()),
                         [](const auto& info) { return info.param.name; });

TEST(ModelDifference, EqualModelsAgreeInEveryPlaceAndGradient) {
  const ModelConfig config = config_of(true, "");
  const auto first = model_of(config);
  const auto second = model_of(config);
  const ModelDifference found = compare_computations(*first, *second, common_batch(config, config, 1));
  EXPECT_FALSE(found.first);
  EXPECT_GT(found.places.size(), 20U);
  EXPECT_EQ(found.gradients.size(), first->parameters().all().size());
  for (const TensorDifference& one : found.gradients) EXPECT_LE(one.difference, kRounding) << one.name;
}

TEST(ModelDifference, EncodersMayPoolInDifferentWays) {
  ModelConfig first = config_of(false, "");
  first.kind = "encoder";
  first.labels = 3;
  ModelConfig second = first;
  second.pooling = "mean";
  const ModelDifference found =
      compare_computations(*model_of(first), *model_of(second), common_batch(first, second, 1));
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->place, "logits");
}

TEST(ModelDifference, EncodersThatPredictTokensPredictThoseTheyRead) {
  ModelConfig config = config_of(false, "");
  config.kind = "encoder";
  config.pooling = "none";
  config.source_vocabulary = 9;
  config.target_vocabulary = 1000;  // of no importance
  const Batch batch = common_batch(config, config, 1);
  for (const int64_t label : batch.labels) EXPECT_LT(label, 9);
  EXPECT_FALSE(compare_computations(*model_of(config), *model_of(config), batch).first);
}

TEST(ModelDifference, ModelsForDifferentPurposesAreRefused) {
  test::expect_error([] { common_batch(config_of(true, ""), config_of(false, ""), 1); },
                     "do not read the same batches");
}

}  // namespace
}  // namespace plumb
