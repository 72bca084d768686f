// Counts compared with formulas and tables of papers.
#include "plumb/plan/model_cost.h"

#include <gtest/gtest.h>

#include "plumb/model/model.h"
#include "plumb/nn/attention/attention.h"

namespace plumb::plan {
namespace {

/// A decoder in the style of Gopher: RMSNorm, relative positions, tied embeddings, inner width 4·d.
ModelConfig decoder(int64_t layers, int64_t d_model, int64_t heads, int64_t head_size, int64_t feed_forward) {
  ModelConfig config;
  config.kind = "decoder";
  config.norm = "rmsnorm";
  config.positions = "transformer-xl";
  config.attention_bias = "none";
  config.feed_forward_bias = false;
  config.decoder_layers = layers;
  config.d_model = d_model;
  config.heads = heads;
  config.head_size = head_size;
  config.feed_forward = feed_forward;
  config.target_vocabulary = 32000;
  config.dropout = 0;
  return config;
}

// Rae et al. 2021, table 1: the models are named by their sizes.
TEST(ModelCost, CountsTheParametersOfGopher) {
  struct Case {
    int64_t layers, d_model, heads, head_size;
    double named;
  };
  for (const Case& each :
       {Case{8, 512, 16, 32, 44e6}, Case{12, 768, 12, 64, 117e6}, Case{12, 1536, 12, 128, 417e6},
        Case{24, 2048, 16, 128, 1.4e9}, Case{32, 4096, 32, 128, 7.1e9}, Case{80, 16384, 128, 128, 280e9}}) {
    const double d = static_cast<double>(each.d_model), l = static_cast<double>(each.layers);
    const ModelCost cost = cost_of(decoder(each.layers, each.d_model, each.heads, each.head_size, 4 * each.d_model));
    const double formula = 13 * l * d * d + 32000 * d;  // norms and the two biases of relative attention are 0.1%
    EXPECT_NEAR(static_cast<double>(cost.parameters), formula, 1.1e-3 * formula);
    EXPECT_NEAR(static_cast<double>(cost.parameters), each.named, 0.02 * each.named);
    EXPECT_EQ(cost.layers, each.layers);
    EXPECT_EQ(cost.embeddings, 32000 * each.d_model);
    EXPECT_DOUBLE_EQ(cost.flops.matrices_per_token(), 26 * l * d * d);
  }
}

TEST(ModelCost, IsThatOfTheModelItself) {
  ModelConfig config = decoder(2, 32, 4, 8, 64);
  config.target_vocabulary = 50;
  for (const char* kind : {"decoder", "encoder-decoder"}) {
    config.kind = kind;
    config.positions = "sinusoidal";
    config.encoder_layers = 3;
    config.source_vocabulary = 50;
    const ModelCost cost = cost_of(config);
    EXPECT_EQ(cost.parameters, make_model(config)->parameters().count());
    const bool decodes = std::string(kind) == "decoder";
    EXPECT_EQ(cost.layers, decodes ? 2 : 5);
    EXPECT_EQ(cost.attentions, decodes ? 2 : 7);
  }
}

// The trainer counts its batches with the same function: sequences of one length, with a label for each token.
TEST(ModelCost, CountsOperationsAsTheTrainerDoes) {
  for (const std::string kind : {"encoder", "decoder", "encoder-decoder"}) {
    for (const std::string& attention : attentions().names()) {
      for (const int64_t kv_heads : {4, 2}) {
        for (const int64_t length : {1, 7, 300}) {
          SCOPED_TRACE(kind + " " + attention + " " + std::to_string(kv_heads) + " " + std::to_string(length));
          ModelConfig config = decoder(2, 32, 4, 8, 64);
          config.kind = kind;
          config.attention = attention;
          config.kv_heads = kv_heads;
          config.positions = "sinusoidal";
          config.encoder_layers = 3;
          config.source_vocabulary = config.target_vocabulary = 50;
          Batch batch;
          const Ragged layout({length, length, length});
          batch.labels.resize(static_cast<size_t>(3 * length));
          if (kind == "encoder") config.labels = 50;
          if (kind != "decoder") {
            batch.source_layout = layout;
            batch.source.resize(batch.labels.size());
          }
          if (kind != "encoder") {
            batch.target_layout = layout;
            batch.target_input.resize(batch.labels.size());
          }
          const double trained = 3 * FlopCounter(*make_model(config)).forward(batch);
          const ModelCost cost = cost_of(config);
          EXPECT_NEAR(cost.training_flops(length) * 3 * static_cast<double>(length), trained, 1e-12 * trained);
          EXPECT_NEAR(
              cost.flops.matrices_per_token() + static_cast<double>(cost.attentions) * cost.attention_flops(length),
              cost.layers_flops(length), 1e-12 * trained);
        }
      }
    }
  }
}

/// What publications count besides: the half of the pairs that causal attention does not compute, per token.
double masked_half(double layers, double length, double width) { return 2 * layers * length * width; }

// Hoffmann et al. 2022, table A4: FLOPs of the layers over 6·N·D at 2,048 tokens. They count another 3·heads·s per
// token for the softmax, and the projection of relative positions only among the parameters.
TEST(ModelCost, AgreesWithChinchillasTable) {
  struct Case {
    int64_t layers, d_model, feed_forward, head_size, heads;
    double ratio;
  };
  for (const Case& each : {Case{10, 640, 2560, 64, 10, 1.03}, Case{20, 1024, 4096, 64, 16, 1.10},
                           Case{24, 1280, 5120, 128, 10, 1.08}, Case{26, 1792, 7168, 128, 14, 1.04},
                           Case{28, 2048, 8192, 128, 16, 1.03}, Case{40, 3584, 14336, 128, 28, 0.99}}) {
    const ModelCost cost = cost_of(decoder(each.layers, each.d_model, each.heads, each.head_size, each.feed_forward));
    const double l = static_cast<double>(each.layers), width = static_cast<double>(each.heads * each.head_size);
    const double positions = 2 * l * static_cast<double>(each.d_model) * width;
    const double softmax = 3 * l * static_cast<double>(each.heads) * 2048;
    const double flops = 3 * (cost.layers_flops(2048) + masked_half(l, 2048, width) - positions + softmax);
    EXPECT_NEAR(flops / (6 * static_cast<double>(cost.parameters)), each.ratio, 0.006);
  }
}

// Narayanan et al. 2021, equations 2 and 3: 12lh²(1 + 13/12h + (V+s)/12lh) parameters, and with every layer recomputed
// 96Bslh²(1 + s/6h + V/16lh) operations per step.
TEST(ModelCost, AgreesWithMegatron) {
  const double l = 96, h = 12288, v = 51200, s = 2048;
  ModelConfig config = decoder(96, 12288, 96, 128, 49'152);
  config.norm = "layernorm";
  config.positions = "learned";
  config.max_positions = 2048;
  config.attention_bias = "all";
  config.feed_forward_bias = true;
  config.target_vocabulary = 51200;
  const ModelCost cost = cost_of(config);
  const double parameters = 12 * l * h * h * (1 + 13 / (12 * h) + (v + s) / (12 * l * h));
  EXPECT_NEAR(static_cast<double>(cost.parameters), parameters, 3 * h);  // the last norm
  EXPECT_NEAR(static_cast<double>(cost.parameters), 174.6e9, 0.05e9);
  const double operations = 96 * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  EXPECT_NEAR(cost.training_flops(2048) + cost.layers_flops(2048) + 4 * masked_half(l, s, h), operations,
              1e-9 * operations);
}

// Rae et al. 2021, section 5 and appendix: 6.3·10²³ operations for 300 billion tokens with recomputation, counted as by
// Hoffmann et al. (appendix F: the embedding also as a product, and no projection of relative positions).
TEST(ModelCost, AgreesWithGophersBudget) {
  const ModelCost cost = cost_of(decoder(80, 16384, 128, 128, 65536));
  const double positions = 2.0 * 80 * 16384 * 16384;
  const double forward = cost.layers_flops(2048) + masked_half(80, 2048, 16384) - positions + 2 * cost.output_flops;
  EXPECT_NEAR(4 * forward * 300e9, 6.3e23, 0.02 * 6.3e23);
}

TEST(ModelCost, LinearAttentionDoesNotGrowWithTheSequence) {
  ModelConfig config = decoder(2, 64, 4, 16, 128);
  config.positions = "sinusoidal";
  EXPECT_EQ(cost_of(config).attention_flops(4096), 4.0 * 64 * 4096 / 2);  // causal
  config.attention = "linear";
  EXPECT_EQ(cost_of(config).attention_flops(4096), 4.0 * 64 * 16);
}

}  // namespace
}  // namespace plumb::plan
