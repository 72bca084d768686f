// Training, Hessian-vector products and decoding of entire models in float32 always take the fast path, and give the
// same results with one and two threads up to rounding.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plumb/analysis/curvature/hessian.h"
#include "plumb/analysis/curvature/lanczos.h"
#include "plumb/decode/translate.h"
#include "plumb/model/encoder_decoder.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/threads.h"
#include "plumb/optim/optimizer.h"
#include "support/batches.h"
#include "support/fallbacks.h"
#include "support/kernels.h"
#include "support/test_names.h"

namespace plumb {
namespace {

constexpr int64_t kVocabulary = 211;

/// Sentences of 1 to 12 tokens, and one of 70.
std::vector<std::vector<int32_t>> sentences(uint64_t seed) {
  Random random(seed, "sentences");
  std::vector<std::vector<int32_t>> all;
  for (int i = 0; i < 12; ++i) {
    std::vector<int32_t> ids(i == 5 ? 70 : 1 + random.below(12));
    for (int32_t& id : ids) id = static_cast<int32_t>(4 + random.below(kVocabulary - 4));
    all.push_back(std::move(ids));
  }
  return all;
}

Batch make_batch() {
  const auto source = sentences(1), target = sentences(2);
  Batch batch;
  for (size_t i = 0; i < source.size(); ++i) append(batch, source[i], target[i], static_cast<int64_t>(i));
  return batch;
}

EncoderDecoder make_model(const std::string& residual, const std::string& share = "target") {
  ModelConfig config;
  config.residual = residual;
  config.d_model = 36;
  config.feed_forward = 60;
  config.heads = 3;
  config.encoder_layers = config.decoder_layers = 2;
  config.source_vocabulary = config.target_vocabulary = kVocabulary;
  config.share_embeddings = share;
  EncoderDecoder model(config);
  model.initialize(3);
  return model;
}

/// The gradient of a training step, flat.
Tensor training_gradient(EncoderDecoder& model) {
  ForwardContext context(0.1, 1, 1);
  LossOptions options;
  options.label_smoothing = 0.1;
  const Loss loss = model.loss(make_batch(), options, context);
  return joined(gradients({loss.value}, model.parameters().values(), {}));
}

Tensor hessian_product(EncoderDecoder& model) {
  HessianOperator hessian(model, {make_batch()});
  return hessian(random_probe(hessian.size(), at::kFloat, 1, 0));
}

std::string told(const test::FallbackCounter& counter) {
  std::string text;
  for (const auto& [what, count] : counter.counts()) text += fmt::format("{} ({} times)\n", what, count);
  return text;
}

class FastPath : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { PLUMB_REQUIRE_KERNELS(); }
  void TearDown() override { ops::set_threads(0); }
};

TEST_P(FastPath, IsTakenByATrainingStep) {
  for (const std::string share : {"none", "target", "all"}) {
    EncoderDecoder model = make_model(GetParam(), share);
    const auto adam = make_optimizer("adam", model.parameters());
    const test::FallbackCounter counter;
    ForwardContext context(0.1, 1, 1);
    const Loss loss = model.loss(make_batch(), {}, context);
    adam->step(gradients({loss.value}, model.parameters().values(), {}), 1e-4, 1.0);
    EXPECT_EQ(told(counter), "") << share;
  }
}

TEST_P(FastPath, IsTakenByAHessianVectorProduct) {
  EncoderDecoder model = make_model(GetParam());
  const test::FallbackCounter counter;
  hessian_product(model);
  EXPECT_EQ(told(counter), "");
}

TEST_P(FastPath, IsTakenByDecoding) {
  EncoderDecoder model = make_model(GetParam());
  for (const int64_t beam : {1, 5}) {
    DecodeOptions options;
    options.beam = beam;
    const test::FallbackCounter counter;
    translate(model, sentences(1), options);
    EXPECT_EQ(told(counter), "") << "beam " << beam;
  }
}

TEST_P(FastPath, GivesTheSameForOneAndTwoThreads) {
  // Plumb's own sums are equal bit for bit (tests/ops/threads_test.cpp); oneDNN does not guarantee an order.
  EncoderDecoder model = make_model(GetParam());
  ops::set_threads(1);
  const Tensor gradient = training_gradient(model), product = hessian_product(model);
  ops::set_threads(2);
  const auto expect_same = [](const Tensor& one, const Tensor& two) {
    EXPECT_LE((one - two).abs().max().item<double>(), 1e-5 * one.abs().max().item<double>());
  };
  expect_same(gradient, training_gradient(model));
  expect_same(product, hessian_product(model));
}

INSTANTIATE_TEST_SUITE_P(Schemes, FastPath, ::testing::ValuesIn(residual_schemes().names()), test::name_of_test);

TEST(FallbackCounter, CountsCopiesOfFloat32FromItsMakingOn) {
  PLUMB_REQUIRE_KERNELS();
  const Tensor a = at::ones({6, 4}), b = at::ones({8, 6});
  const auto apart = b.t().narrow(1, 0, 4);  // its rows are not contiguous
  ops::gemm(a, apart, {.transpose_a = true});
  const test::FallbackCounter counter;
  EXPECT_EQ(told(counter), "");
  ops::gemm(a, b, {.transpose_a = true, .transpose_b = true});
  ops::gemm(a.to(at::kDouble), apart.to(at::kDouble), {.transpose_a = true});
  EXPECT_EQ(told(counter), "");
  ops::gemm(a, apart, {.transpose_a = true});
  ops::gemm(a, apart, {.transpose_a = true});
  EXPECT_EQ(told(counter), "matrix product: copy (2 times)\n");
}

}  // namespace
}  // namespace plumb
