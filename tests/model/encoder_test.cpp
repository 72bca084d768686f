// The encoder-only model: its parameters, that each token sees its entire sequence and no other, pooling and pooler,
// segments, and its derivatives.
#include "plumb/model/encoder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "support/gradcheck.h"

namespace plumb::encoder_test {
namespace {

ModelConfig bert() {
  ModelConfig config;
  Config::from_string(R"([model]
kind = "encoder"
residual = "post-ln"
norm_eps = 1e-12
positions = "learned"
max_positions = 9
activation = "gelu"
d_model = 8
feed_forward = 12
heads = 2
encoder_layers = 2
source_vocabulary = 11
embedding_factor = 1.0
embedding_norm = true
segments = 2
pooler = true
labels = 3
)",
                      "test")
      .read("model", config);
  return config;
}

Batch small_batch() {
  Batch batch;
  batch.source = {1, 5, 6, 2, 7, 2, 1, 8, 2};
  batch.segments = {0, 0, 0, 0, 1, 1, 0, 0, 0};
  batch.source_layout = Ragged({6, 3});
  batch.labels = {2, 0};
  return batch;
}

/// All parameters random: none at 0 or 1.
Encoder filled(const ModelConfig& config) {
  Encoder model(config, at::kDouble);
  model.parameters().flat().copy_(testing::random_tensor({model.parameters().count()}, 3, 0.4));
  return model;
}

Tensor value(const Model& model, const std::string& name) { return model.parameters().at(name).value.detach(); }

Tensor hidden(Encoder& model, const Batch& batch) {
  ForwardContext context;
  return model.hidden(batch.source, batch.segments, batch.source_layout, context);
}

double distance(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

TEST(Encoder, HasTheParametersOfBert) {
  const Encoder model(bert());
  std::vector<std::string> names;
  for (const Parameter& parameter : model.parameters().all()) names.push_back(parameter.name);
  std::vector<std::string> expected = {"src_embed.weight", "src_position.weight", "src_segment.weight",
                                       "src_embed_norm.weight", "src_embed_norm.bias"};
  for (const char* layer : {"encoder.layers.0.", "encoder.layers.1."}) {
    for (const char* name : {"self_attn.in_proj_weight", "self_attn.in_proj_bias", "self_attn.out_proj.weight",
                             "self_attn.out_proj.bias", "linear1.weight", "linear1.bias", "linear2.weight",
                             "linear2.bias", "norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"})
      expected.push_back(std::string(layer) + name);
  }
  for (const char* name : {"pooler.weight", "pooler.bias", "output.weight", "output.bias"}) expected.emplace_back(name);
  std::sort(names.begin(), names.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(names, expected);
  EXPECT_EQ(value(model, "src_segment.weight").sizes(), at::IntArrayRef({2, 8}));
  EXPECT_EQ(value(model, "output.weight").sizes(), at::IntArrayRef({3, 8}));
  EXPECT_EQ(value(model, "output.bias").sizes(), at::IntArrayRef({3}));
  // Unlike pooler.weight, not a hidden matrix: optimizers for hidden matrices leave it to another one.
  EXPECT_EQ(model.parameters().at("output.weight").role, Role::readout);
  EXPECT_EQ(value(model, "pooler.weight").sizes(), at::IntArrayRef({8, 8}));
}

/// E[token] + P[position] + S[segment], normalized: the input of the first layer.
TEST(Encoder, AddsPositionsAndSegmentsAndNormalizes) {
  Encoder model = filled(bert());
  const Batch batch = small_batch();
  Tensor input;
  ForwardContext context;
  context.watch([&](const ActivationPoint& point, const Tensor& x) {
    if (to_string(point) == "encoder.input") input = x;
  });
  (void)model.states(batch, context);
  const std::vector<int64_t> positions = {0, 1, 2, 3, 4, 5, 0, 1, 2};
  for (size_t t = 0; t < batch.source.size(); ++t) {
    const Tensor sum = value(model, "src_embed.weight")[batch.source[t]] +
                       value(model, "src_position.weight")[positions[t]] +
                       value(model, "src_segment.weight")[batch.segments[t]];
    const Tensor centered = sum - sum.mean();
    const Tensor expected =
        centered / (centered.square().mean() + 1e-12).sqrt() * value(model, "src_embed_norm.weight") +
        value(model, "src_embed_norm.bias");
    EXPECT_LT(distance(input[static_cast<int64_t>(t)], expected), 1e-12) << t;
  }
}

TEST(Encoder, SeesTheWholeSequenceAndNoOther) {
  Encoder model = filled(bert());
  Batch batch = small_batch();
  const Tensor before = hidden(model, batch);
  batch.source[4] = 9;
  const Tensor changed = (hidden(model, batch) - before).abs().amax(1);
  EXPECT_GT(changed.narrow(0, 0, 6).min().item<double>(), 1e-6);
  EXPECT_EQ(changed.narrow(0, 6, 3).max().item<double>(), 0);
  ForwardContext context;
  const Tensor alone = model.hidden({1, 8, 2}, {}, Ragged({3}), context);
  EXPECT_LT(distance(alone, before.narrow(0, 6, 3)), 1e-12);
}

TEST(Encoder, PoolsAndClassifies) {
  for (const char* pooling : {"first", "last", "mean", "max"}) {
    for (const bool pooler : {true, false}) {
      SCOPED_TRACE(fmt::format("{} {}", pooling, pooler));
      ModelConfig config = bert();
      config.pooling = pooling;
      config.pooler = pooler;
      Encoder model = filled(config);
      const Batch batch = small_batch();
      const Tensor tokens = hidden(model, batch);
      std::vector<Tensor> rows;
      for (const auto& [begin, count] : {std::pair<int64_t, int64_t>{0, 6}, {6, 3}}) {
        const Tensor sequence = tokens.narrow(0, begin, count);
        const std::string kind = pooling;
        rows.push_back(kind == "first"  ? sequence[0]
                       : kind == "last" ? sequence[count - 1]
                       : kind == "mean" ? sequence.mean(0)
                                        : std::get<0>(sequence.max(0)));
      }
      Tensor expected = at::stack(rows);
      if (pooler)
        expected = at::tanh(at::addmm(value(model, "pooler.bias"), expected, value(model, "pooler.weight").t()));
      ForwardContext context;
      EXPECT_LT(distance(model.states(batch, context), expected), 1e-12);
      const Tensor logits = at::addmm(value(model, "output.bias"), expected, value(model, "output.weight").t());
      EXPECT_LT(distance(model.class_logits(batch), logits), 1e-12);
      const Tensor log_p = at::log_softmax(logits, 1);
      EXPECT_NEAR(model.loss(batch, {}, context).value.item<double>(), -(log_p[0][2] + log_p[1][0]).item<double>() / 2,
                  1e-12);
      EXPECT_EQ(model.labels(), 3);
    }
  }
}

TEST(Encoder, PredictsATokenForEachWhereNothingIsPooled) {
  for (const char* share : {"target", "none"}) {
    ModelConfig config = bert();
    config.pooling = "none";
    config.pooler = false;
    config.labels = 0;
    config.share_embeddings = share;
    config.output_bias = true;
    Encoder model = filled(config);
    EXPECT_EQ(model.classifies(), nullptr);
    EXPECT_EQ(model.parameters().find("output.weight") == nullptr, std::string(share) == "target");
    Batch batch = small_batch();
    batch.labels = batch.source;
    batch.weights = {0, 1, 0, 0, 2, 0, 0, 0, 1};
    const Tensor output = value(model, std::string(share) == "target" ? "src_embed.weight" : "output.weight");
    const Tensor log_p = at::log_softmax(at::addmm(value(model, "output.bias"), hidden(model, batch), output.t()), 1);
    const double expected = -(log_p[1][5] + 2 * log_p[4][7] + log_p[8][2]).item<double>();
    for (const bool twice : {true, false}) {
      ForwardContext context;
      LossOptions options;
      options.twice_differentiable = twice;
      const Loss loss = model.loss(batch, options, context);
      EXPECT_NEAR(loss.nll, expected, 1e-12);
      EXPECT_NEAR(loss.value.item<double>(), expected / 4, 1e-12);
      EXPECT_EQ(loss.weight, 4);
    }
  }
}

/// LayerNorm(gelu(W·x + b)) of the states at the predicted places.
TEST(Encoder, TransformsWhatItPredictsFrom) {
  ModelConfig config = bert();
  config.pooling = "none";
  config.pooler = false;
  config.labels = 0;
  config.output_transform = true;
  Encoder model = filled(config);
  Batch batch = small_batch();
  batch.predicted_positions = {1, 4};
  const Tensor h = hidden(model, batch).index_select(0, at::tensor(std::vector<int64_t>{1, 4}));
  const Tensor x = at::addmm(value(model, "transform.bias"), h, value(model, "transform.weight").t());
  const Tensor gelu = 0.5 * x * (1 + at::erf(x / std::sqrt(2.0)));
  const Tensor centered = gelu - gelu.mean(1, true);
  const Tensor normed = centered / (centered.square().mean(1, true) + config.norm_eps).sqrt();
  const Tensor expected = normed * value(model, "transform_norm.weight") + value(model, "transform_norm.bias");
  ForwardContext context;
  EXPECT_LT(distance(model.states(batch, context), expected), 1e-12);
}

/// A Hessian-vector product and the gradient compared with finite differences of the gradient and the loss.
TEST(Encoder, CanBeDifferentiatedTwice) {
  for (const char* pooling : {"first", "mean", "max", "none"}) {
    SCOPED_TRACE(pooling);
    ModelConfig config = bert();
    config.pooling = pooling;
    Batch batch = small_batch();
    if (config.pooling == "none") {
      config.labels = 0;
      config.pooler = false;
      config.output_transform = true;
      batch.predicted_positions = {1, 4};
      batch.labels = {3, 5};
      batch.weights = {};
    }
    Encoder model = filled(config);
    const std::vector<Tensor> values = model.parameters().values();
    const LossOptions twice{0.1, std::nullopt, true};
    const auto loss = [&] {
      ForwardContext context;
      return model.loss(batch, twice, context).value;
    };
    const auto gradient = [&] { return joined(gradients({loss()}, values, {})); };
    const Tensor flat = model.parameters().flat();
    const Tensor start = flat.clone();
    const Tensor v = testing::random_tensor({flat.numel()}, 4);
    const std::vector<Tensor> with_graph = gradients({loss()}, values, {}, /*create_graph=*/true);
    const Tensor product = joined(gradients(with_graph, values, model.parameters().split(v)));
    const double slope = joined(with_graph).dot(v).item<double>();
    constexpr double kStep = 1e-6;
    flat.copy_(start + kStep * v);
    const Tensor up = gradient();
    const double higher = loss().item<double>();
    flat.copy_(start - kStep * v);
    const Tensor down = gradient();
    const double lower = loss().item<double>();
    flat.copy_(start);
    EXPECT_NEAR(slope, (higher - lower) / (2 * kStep), 1e-6 * (1 + std::abs(slope)));
    const Tensor numeric = (up - down) / (2 * kStep);
    EXPECT_LT((product - numeric).norm().item<double>(), 1e-6 * (1 + numeric.norm().item<double>()));
  }
}

TEST(Encoder, IsAModelOfItsKindAlone) {
  const auto refuses = [](const std::function<void(ModelConfig&)>& change) {
    ModelConfig config = bert();
    change(config);
    EXPECT_THROW(Encoder{config}, Error);
  };
  refuses([](ModelConfig& config) { config.kind = "decoder"; });
  refuses([](ModelConfig& config) { config.labels = 0; });
  refuses([](ModelConfig& config) { config.pooling = "sum"; });
  refuses([](ModelConfig& config) { config.pooling = "none"; });  // and a pooler
  refuses([](ModelConfig& config) { config.output_transform = true; });
  refuses([](ModelConfig& config) { config.source_vocabulary = 0; });
  ModelConfig config = bert();
  config.source_vocabulary = 0;
  config.target_vocabulary = 7;
  EXPECT_EQ(value(*make_model(config), "src_embed.weight").size(0), 7);
  config.segments = 0;
  Encoder without(config);
  ForwardContext context;
  without.initialize(1);
  // Segments without embeddings are ignored.
  EXPECT_TRUE(
      without.hidden({1, 2}, {0, 1}, Ragged({2}), context).equal(without.hidden({1, 2}, {0, 0}, Ragged({2}), context)));
}

TEST(Capabilities, AreThoseOfTheKindOfModel) {
  ModelConfig config = bert();
  config.target_vocabulary = 11;
  config.segments = 0;
  const auto of = [&](const std::string& kind) {
    config.kind = kind;
    const auto model = make_model(config);
    return fmt::format("{}{}{}{}", model->generates() != nullptr, model->translates() != nullptr,
                       model->classifies() != nullptr, model->embeds() != nullptr);
  };
  EXPECT_EQ(of("encoder"), "falsefalsetruetrue");
  config.labels = 0;
  EXPECT_EQ(of("decoder"), "truefalsefalsetrue");
  EXPECT_EQ(of("encoder-decoder"), "falsetruefalsefalse");
}

}  // namespace
}  // namespace plumb::encoder_test
