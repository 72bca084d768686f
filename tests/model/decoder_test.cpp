// The decoder-only model: its parameters, its causality, and that it and the encoder-decoder can be trained,
// differentiated twice, saved and loaded with every kind of attention and positions.
#include "plumb/model/decoder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "plumb/io/safetensors.h"
#include "plumb/nn/attention/attention.h"
#include "plumb/nn/attention/dpfp.h"
#include "support/batches.h"
#include "support/every_pair.h"
#include "support/gradcheck.h"
#include "support/paths.h"
#include "support/small_model.h"

namespace plumb::decoder_test {
namespace {

using test::small_model;

Batch small_batch() {
  Batch batch;
  append(batch, std::vector<int32_t>{5, 6, 7}, std::vector<int32_t>{8, 9, 4, 10}, 0);
  append(batch, std::vector<int32_t>{5}, std::vector<int32_t>{8, 5, 6}, 1);
  return batch;
}

TEST(Decoder, HasTheParametersOfADecoderWithoutCrossAttention) {
  const Decoder model(small_model("decoder"));
  std::vector<std::string> names;
  for (const Parameter& parameter : model.parameters().all()) names.push_back(parameter.name);
  EXPECT_EQ(names.front(), "tgt_embed.weight");
  EXPECT_NE(model.parameters().find("decoder.layers.1.self_attn.in_proj_weight"), nullptr);
  EXPECT_NE(model.parameters().find("decoder.layers.1.norm2.weight"), nullptr);
  EXPECT_NE(model.parameters().find("decoder.norm.weight"), nullptr);
  EXPECT_EQ(model.parameters().find("decoder.layers.1.norm3.weight"), nullptr);
  EXPECT_EQ(model.parameters().find("decoder.layers.0.multihead_attn.in_proj_weight"), nullptr);
  EXPECT_EQ(model.parameters().find("src_embed.weight"), nullptr);
}

TEST(Decoder, IsAModelOfItsKindAlone) {
  EXPECT_THROW(Decoder{small_model("encoder-decoder")}, Error);
  ModelConfig config = small_model("decoder");
  config.source_vocabulary = 0;  // unused
  EXPECT_NO_THROW(make_model(config));
}

TEST(Decoder, ABatchWithoutWeightHasNoLoss) {
  Batch batch = small_batch();
  batch.weights.assign(batch.labels.size(), 0.0);
  Decoder model(small_model("decoder"), at::kDouble);
  model.initialize(1);
  for (const bool twice : {false, true}) {
    ForwardContext context(Pass::measurement);
    const Loss loss = model.loss(batch, {.label_smoothing = 0.1, .twice_differentiable = twice}, context);
    EXPECT_EQ(loss.value.item<double>(), 0.0);
    EXPECT_EQ(loss.weight, 0.0);
    for (const Tensor& gradient : gradients({loss.value}, model.parameters().values(), {}))
      EXPECT_EQ(gradient.abs().max().item<double>(), 0.0);
  }
}

TEST(Decoder, LooksBackOnly) {
  for (const std::string& attention : attentions().names()) {
    ModelConfig config = small_model("decoder");
    config.attention = attention;
    Decoder model(config, at::kDouble);
    model.initialize(1);
    ForwardContext context;
    std::vector<int64_t> tokens = {1, 5, 6, 7, 8, 9};
    const Tensor before = model.hidden(tokens, Ragged({6}), context);
    tokens[4] = 10;
    const Tensor after = model.hidden(tokens, Ragged({6}), context);
    const Tensor difference = (after - before).abs().amax(1);
    EXPECT_LT(difference.narrow(0, 0, 4).max().item<double>(), 1e-13) << attention;
    EXPECT_GT(difference.narrow(0, 4, 2).min().item<double>(), 1e-6) << attention;
  }
}

TEST(Decoder, SequencesDoNotSeeOneAnother) {
  for (const std::string& attention : attentions().names()) {
    ModelConfig config = small_model("decoder");
    config.attention = attention;
    Decoder model(config, at::kDouble);
    model.initialize(1);
    ForwardContext context;
    const Tensor together = model.hidden({1, 5, 6, 1, 7, 8, 9}, Ragged({3, 4}), context);
    const Tensor alone = model.hidden({1, 7, 8, 9}, Ragged({4}), context);
    EXPECT_LT((together.narrow(0, 3, 4) - alone).abs().max().item<double>(), 1e-12) << attention;
  }
}

/// x + attention(norm(x)) + feed_forward(norm(x)), then the last norm.
TEST(Decoder, ParallelSubLayersReadTheSame) {
  ModelConfig config = small_model("decoder");
  config.decoder_layers = 1;
  config.parallel = true;
  config.share_embeddings = "none";
  config.output_bias = true;
  Decoder model(config, at::kDouble);
  model.parameters().flat().copy_(testing::random_tensor({model.parameters().count()}, 3, 0.5));
  EXPECT_EQ(model.parameters().find("decoder.layers.0.norm2.weight"), nullptr);
  const auto value = [&](const std::string& name) { return model.parameters().at(name).value.detach(); };
  Tensor x;
  ForwardContext context;
  context.watch([&](const ActivationPoint& point, const Tensor& activation) {
    if (to_string(point) == "decoder.input") x = activation;
  });
  const Tensor found = model.hidden({1, 5, 6, 7}, Ragged({4}), context);
  const auto norm = [&](const Tensor& of, const std::string& name) {
    const Tensor centered = of - of.mean(1, true);
    return centered / (centered.square().mean(1, true) + 1e-5).sqrt() * value(name + ".weight") + value(name + ".bias");
  };
  const auto linear = [&](const Tensor& of, const std::string& weight, const std::string& bias) {
    return at::addmm(value("decoder.layers.0." + bias), of, value("decoder.layers.0." + weight).t());
  };
  const Tensor h = norm(x, "decoder.layers.0.norm1");
  const auto parts = linear(h, "self_attn.in_proj_weight", "self_attn.in_proj_bias").chunk(3, 1);
  const auto by_head = [](const Tensor& part) { return part.reshape({4, 2, 4}); };
  Tensor scores = at::einsum("ihd,jhd->hij", {by_head(parts[0]), by_head(parts[1])}) / 2;
  scores = scores.masked_fill(at::ones({4, 4}, at::kBool).triu(1), -INFINITY);
  const Tensor mixed = at::einsum("hij,jhd->ihd", {at::softmax(scores, -1), by_head(parts[2])}).reshape({4, 8});
  const Tensor attention = linear(mixed, "self_attn.out_proj.weight", "self_attn.out_proj.bias");
  const Tensor inner = at::relu(linear(h, "linear1.weight", "linear1.bias"));
  const Tensor expected = norm(x + attention + linear(inner, "linear2.weight", "linear2.bias"), "decoder.norm");
  EXPECT_LT((found - expected).abs().max().item<double>(), 1e-12);
  const Tensor logits = at::addmm(value("output.bias"), expected, value("output.weight").t());
  EXPECT_LT((model.logits(found) - logits).abs().max().item<double>(), 1e-12);
}

TEST(Decoder, EmbeddingFactorMultipliesTokensAlone) {
  ModelConfig config = small_model("decoder");
  config.positions = "learned";
  const auto input = [&](double factor) {
    config.embedding_factor = factor;
    Decoder model(config, at::kDouble);
    model.parameters().flat().copy_(testing::random_tensor({model.parameters().count()}, 3));
    Tensor x;
    ForwardContext context;
    context.watch([&](const ActivationPoint& point, const Tensor& activation) {
      if (to_string(point) == "decoder.input") x = activation;
    });
    (void)model.hidden({4}, Ragged({1}), context);
    const Tensor token = model.parameters().at("tgt_embed.weight").value.detach()[4];
    const Tensor position = model.parameters().at("tgt_position.weight").value.detach()[0];
    return ((x[0] - position) / token).mean().item<double>();
  };
  EXPECT_NEAR(input(0), std::sqrt(8.0), 1e-12);
  EXPECT_NEAR(input(1), 1, 1e-12);
  EXPECT_NEAR(input(2.5), 2.5, 1e-12);
}

/// A gradient step, a Hessian-vector product compared with finite differences of gradients where the model is smooth,
/// and a file written and read back.
void expect_to_train(const ModelConfig& config, bool smooth) {
  const Batch batch = small_batch();
  const auto model = make_model(config, at::kDouble);
  model->initialize(2);
  const Parameters& parameters = model->parameters();
  const std::vector<Tensor> values = parameters.values();
  const LossOptions twice{0.1, std::nullopt, true};
  const auto gradient = [&] {
    ForwardContext context;
    return joined(gradients({model->loss(batch, twice, context).value}, values, {}));
  };
  const Tensor flat = parameters.flat();
  const Tensor start = flat.clone();
  const Tensor v = at::empty_like(flat);
  Random random(1, "direction");
  for (int64_t i = 0; i < v.numel(); ++i) v.data_ptr<double>()[i] = random.normal();

  ForwardContext context;
  const std::vector<Tensor> with_graph =
      gradients({model->loss(batch, twice, context).value}, values, {}, /*create_graph=*/true);
  const std::vector<Tensor> pieces = parameters.split(v);
  std::vector<Tensor> outputs;
  std::vector<Tensor> weights;
  for (size_t i = 0; i < with_graph.size(); ++i) {
    if (!with_graph[i].requires_grad()) continue;
    outputs.push_back(with_graph[i]);
    weights.push_back(pieces[i]);
  }
  const Tensor product = joined(gradients(outputs, values, weights));
  constexpr double kStep = 1e-6;
  flat.copy_(start + kStep * v);
  const Tensor up = gradient();
  flat.copy_(start - kStep * v);
  const Tensor down = gradient();
  flat.copy_(start);
  const Tensor numeric = (up - down) / (2 * kStep);
  if (smooth) {
    EXPECT_LT((product - numeric).norm().item<double>(), 1e-6 * (1 + numeric.norm().item<double>()));
  } else {
    EXPECT_TRUE(at::isfinite(product).all().item<bool>());
  }

  const double before = model->loss(batch, {}, context).value.item<double>();
  const Tensor downhill = gradient();
  // Where quotients of small numbers and kinks make the loss rough, only a short step is certain to decrease it.
  flat.sub_(downhill * ((smooth ? 1e-3 : 1e-7) / (1 + downhill.norm().item<double>())));
  EXPECT_LT(model->loss(batch, {}, context).value.item<double>(), before);

  const test::TemporaryDirectory directory;
  save_safetensors(directory / "model.safetensors", named_values(parameters));
  const auto loaded = make_model(config, at::kDouble);
  load_parameters(loaded->parameters(), load_safetensors(directory / "model.safetensors"), "file");
  EXPECT_TRUE(at::equal(loaded->parameters().flat(), flat));
}

struct Crossed {
  std::string attention, kind, positions, qk_norm;
  std::string options = {};  // of blocks, as TOML
};

bool is_biased(const std::string& positions) {
  return positions == "alibi" || positions == "t5" || positions == "transformer-xl";
}

/// Of attention, positions and norms of heads in both kinds of model every two, and every attention with each of the
/// options of blocks.
std::vector<Crossed> crossed() {
  std::vector<Crossed> positioned, with_options;
  for (const std::string& attention : attentions().names()) {
    for (const char* kind : {"encoder-decoder", "decoder"}) {
      for (const std::string& encoding : positions().names()) {
        if (is_biased(encoding) && attention != "softmax") continue;
        for (const char* qk_norm : {"none", "layernorm"}) positioned.push_back({attention, kind, encoding, qk_norm});
      }
      for (const char* options :
           {"kv_heads = 1\nhead_size = 3", "kv_heads = 2\nheads = 4\nqk_norm = \"rmsnorm\"\nvalue_residual = true",
            "parallel = true\nactivation = \"gelu-tanh\"", "activation = \"swiglu\"\nfeed_forward_bias = false",
            "activation = \"geglu\"\nattention_bias = \"qkv\"\noutput_bias = true",
            "attention_bias = \"none\"\nembedding_norm = true\nembedding_factor = 1.0",
            "positions = \"rotary\"\n[model.rotary]\ninterleaved = false\nfeatures = 2"})
        with_options.push_back({attention, kind, "", "", options});
    }
  }
  std::vector<Crossed> selected;
  for (const std::vector<Crossed>& all : {positioned, with_options}) {
    for (const Crossed& each : test::with_every_pair(all, [](const Crossed& given) {
           return std::vector<std::string>{"attention " + given.attention, "kind " + given.kind,
                                           "positions " + given.positions, "norm " + given.qk_norm,
                                           "options " + given.options};
         }))
      selected.push_back(each);
  }
  return selected;
}

class DecoderCrossProduct : public ::testing::TestWithParam<Crossed> {};

TEST_P(DecoderCrossProduct, CanBeTrainedDifferentiatedSavedAndLoaded) {
  const Crossed& given = GetParam();
  SCOPED_TRACE(
      fmt::format("{} {} {} {} {}", given.attention, given.kind, given.positions, given.qk_norm, given.options));
  ModelConfig config = small_model(given.kind);
  config.attention = given.attention;
  config.activation = "gelu";  // without kinks, which would spoil finite differences
  if (given.options.empty()) {
    config.positions = given.positions;
    config.qk_norm = given.qk_norm;
  } else {
    // All rotations: every query shares features with some key, so nothing is divided by rounding errors.
    config.options = {{"dpfp", Options(DpfpOptions{7})}};
    Config::from_string("[model]\n" + given.options, "test").read("model", config);
  }
  // The rectified features of DPFP have kinks, where finite differences are meaningless.
  expect_to_train(config, given.attention != "dpfp" && given.attention != "delta");
}

INSTANTIATE_TEST_SUITE_P(Models, DecoderCrossProduct, ::testing::ValuesIn(crossed()), [](const auto& info) {
  std::string name = info.param.attention;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return fmt::format("{}_{}", name, info.index);
});

TEST(Decoder, AndEncoderDecoderRefuseBiasesOfAttentionWithoutSoftmax) {
  for (const std::string& attention : attentions().names()) {
    if (attention == "softmax") continue;
    for (const char* kind : {"encoder-decoder", "decoder"}) {
      for (const std::string& encoding : positions().names()) {
        if (!is_biased(encoding)) continue;
        ModelConfig config = small_model(kind);
        config.attention = attention;
        config.positions = encoding;
        EXPECT_THROW(make_model(config), Error) << kind << ' ' << attention << ' ' << encoding;
      }
    }
  }
}

}  // namespace
}  // namespace plumb::decoder_test
