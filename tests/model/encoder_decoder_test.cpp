// Encoder-decoders whose stacks differ, and what cross-attention reads.
#include "plumb/model/encoder_decoder.h"

#include <gtest/gtest.h>

#include "plumb/nn/residual/residual.h"
#include "support/errors.h"
#include "support/small_model.h"

namespace plumb {
namespace {

ModelConfig mixed_model(const std::string& encoder, const std::string& decoder) {
  ModelConfig config = test::small_model("encoder-decoder");
  config.residual = decoder;
  config.encoder_residual = encoder;
  return config;
}

/// Copies the values of all parameters that both models have.
void copy_parameters(const EncoderDecoder& from, EncoderDecoder& to) {
  const at::NoGradGuard no_graph;
  for (const Parameter& parameter : to.parameters().all()) {
    for (const Parameter& other : from.parameters().all()) {
      if (other.name == parameter.name) Tensor(parameter.value).copy_(other.value);
    }
  }
}

const std::vector<int64_t> kSource = {4, 5, 6, 7, 8};
const Ragged kSourceLayout(std::vector<int64_t>{2, 3});
const std::vector<int64_t> kTarget = {1, 9, 1, 10};
const Ragged kTargetLayout(std::vector<int64_t>{2, 2});

TEST(EncoderDecoder, StacksMayHaveDifferentSchemes) {
  EncoderDecoder mixed(mixed_model("pre-ln", "post-ln"), at::kDouble);
  mixed.initialize(3);
  EncoderDecoder pre(mixed_model("same", "pre-ln"), at::kDouble);
  EncoderDecoder post(mixed_model("same", "post-ln"), at::kDouble);
  copy_parameters(mixed, pre);
  copy_parameters(mixed, post);
  ForwardContext context;
  const Tensor memory = mixed.encode(kSource, kSourceLayout, context);
  EXPECT_TRUE(memory.equal(pre.encode(kSource, kSourceLayout, context)));
  EXPECT_FALSE(memory.allclose(post.encode(kSource, kSourceLayout, context)));
  const Tensor states = mixed.decode(kTarget, kTargetLayout, memory, kSourceLayout, context);
  EXPECT_TRUE(states.equal(post.decode(kTarget, kTargetLayout, memory, kSourceLayout, context)));
}

TEST(EncoderDecoder, CentersTheMemoryOfEachSentence) {
  ModelConfig config = mixed_model("same", "post-ln");
  EncoderDecoder usual(config, at::kDouble);
  usual.initialize(3);
  config.center_memory = true;
  EncoderDecoder centered(config, at::kDouble);
  copy_parameters(usual, centered);
  ForwardContext context;
  const Tensor states = usual.encode(kSource, kSourceLayout, context);
  Tensor shown;
  int times = 0;
  context.watch([&](const ActivationPoint& point, const Tensor& x) {
    if (point.point != Point::result) return;
    shown = x;
    ++times;
  });
  const Tensor memory = centered.encode(kSource, kSourceLayout, context);
  EXPECT_TRUE(shown.equal(memory));
  EXPECT_EQ(times, 1);
  for (const auto& [begin, length] : {std::pair<int64_t, int64_t>{0, 2}, {2, 3}}) {
    const Tensor rows = states.narrow(0, begin, length) - states.narrow(0, begin, length).mean(0, true);
    const Tensor expected = rows / (rows.square().mean(1, true) + 1e-5).sqrt();
    EXPECT_TRUE(memory.narrow(0, begin, length).allclose(expected, 1e-12, 1e-12));
  }
}

TEST(EncoderDecoder, ShowsTheResultOfEachStackInEveryScheme) {
  for (const std::string& residual : residual_schemes().names()) {
    EncoderDecoder model(mixed_model("same", residual), at::kDouble);
    model.initialize(3);
    ForwardContext context;
    std::vector<Tensor> shown;
    context.watch([&](const ActivationPoint& point, const Tensor& x) {
      if (point.point == Point::result) shown.push_back(x);
    });
    const Tensor memory = model.encode(kSource, kSourceLayout, context);
    const Tensor states = model.decode(kTarget, kTargetLayout, memory, kSourceLayout, context);
    ASSERT_EQ(shown.size(), 2U) << residual;
    EXPECT_TRUE(shown[0].equal(memory) && shown[1].equal(states)) << residual;
  }
}

TEST(EncoderDecoder, HasNoLabels) {
  ModelConfig config = mixed_model("same", "pre-ln");
  config.labels = 3;
  EXPECT_EQ(test::message_of([&] { validate(config); }),
            "model.labels = 3: a model of kind \"encoder-decoder\" predicts tokens");
}

TEST(EncoderDecoder, RefusesStacksThatCannotBeCombined) {
  EXPECT_EQ(
      test::message_of([] { validate(mixed_model("ngpt", "post-ln")); }),
      "model.encoder_residual = \"ngpt\" cannot be combined with model.residual = \"post-ln\": one of them keeps all "
      "matrices at unit length");
  ModelConfig decoder = mixed_model("pre-ln", "post-ln");
  decoder.kind = "decoder";
  EXPECT_EQ(test::message_of([&] { validate(decoder); }),
            "model.encoder_residual needs an encoder-decoder, and model.kind is \"decoder\"");
  decoder.encoder_residual = "same";
  decoder.encoder_initialization = "he";
  EXPECT_EQ(test::message_of([&] { validate(decoder); }),
            "model.encoder_initialization needs an encoder-decoder, and model.kind is \"decoder\"");
}

}  // namespace
}  // namespace plumb
