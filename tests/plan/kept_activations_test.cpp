// Memory kept by a forward pass: what smaller models say of it, compared with the bytes held between the forward pass
// of the model itself and its backward pass; and for one model, with the sizes of what its operations save.
#include "plumb/plan/kept_activations.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/model/model.h"
#include "plumb/ops/memory.h"
#include "plumb/ops/precision.h"
#include "support/bfloat16.h"
#include "support/kernels.h"

namespace plumb::plan {
namespace {

ModelConfig small_decoder() {
  ModelConfig config;
  config.kind = "decoder";
  config.d_model = 128;
  config.feed_forward = 384;
  config.heads = 4;
  config.decoder_layers = 5;
  config.target_vocabulary = 300;
  config.positions = "none";
  config.dropout = 0.1;
  return config;
}

Batch batch_of(const LocalBatch& size, int64_t vocabulary) {
  Batch batch;
  batch.target_layout = Ragged(std::vector<int64_t>(static_cast<size_t>(size.sequences), size.length));
  for (int64_t i = 0; i < size.tokens(); ++i) {
    batch.target_input.push_back(i % vocabulary);
    batch.labels.push_back((i + 1) % vocabulary);
  }
  return batch;
}

/// Bytes held after a forward pass. The passes before it allocate what is kept permanently.
double held_bytes(const ModelConfig& config, const LocalBatch& size) {
  const std::unique_ptr<Model> model = make_model(config);
  model->initialize(1);
  const Batch batch = batch_of(size, config.target_vocabulary);
  ops::MatrixPrecision precision(size.rounded ? ops::Precision::bfloat16 : ops::Precision::float32);
  const ops::PrecisionGuard guard(precision);
  const auto forward = [&] {
    ForwardContext context(config.dropout, 1, 1);
    if (size.recomputed) context.recompute();
    return model->loss(batch, {}, context);
  };
  for (int i = 0; i < 2; ++i) static_cast<void>(gradients({forward().value}, model->parameters().values(), {}));
  const ops::HeldMemory held{at::Device(at::kCPU)};
  const Loss loss = forward();
  return static_cast<double>(held.bytes());
}

void expect_counted(const ModelConfig& config, const LocalBatch& size) {
  const KeptActivations kept = kept_activations(config, size);
  const double expected = kept.layers + kept.weights + kept.output;
#if defined(__SANITIZE_THREAD__)
  constexpr double kTolerance = 0.06;  // its allocator rounds sizes up
#else
  constexpr double kTolerance = 0.03;
#endif
  EXPECT_NEAR(held_bytes(config, size), expected, kTolerance * expected);
}

// The input and statistics of either norm, what it returns, queries to values, what attention mixes, and the result of
// ReLU, which is its own mask: 4·(2·(d + 2) + 2·d + 3·d + d + f) bytes for each token and layer, and the last norm.
TEST(KeptActivations, AreWhatTheOperationsSave) {
  PLUMB_REQUIRE_KERNELS();  // reference operations keep other tensors
  const ModelConfig config = small_decoder();
  const LocalBatch size{.sequences = 6, .length = 64};
  const double d = 128, f = 384, tokens = 6 * 64;
  const double expected = tokens * 4 * (5 * (2 * (d + 2) + 6 * d + f) + d + 2);
  const KeptActivations kept = kept_activations(config, size);
  EXPECT_NEAR(kept.layers + kept.weights, expected, 0.03 * expected);
}

TEST(KeptActivations, OfRecomputedLayersAreTheirInputs) {
  PLUMB_REQUIRE_KERNELS();
  const ModelConfig config = small_decoder();
  const double d = 128, f = 384, tokens = 6 * 64;
  const double layer = tokens * 4 * (2 * (d + 2) + 6 * d + f);
  const KeptActivations kept = kept_activations(config, {.sequences = 6, .length = 64, .recomputed = true});
  const double expected = tokens * 4 * (5 * d + d + d + 2);  // inputs, and those of the last norm and the output
  EXPECT_NEAR(kept.layers + kept.weights, expected, 0.2 * expected);
  EXPECT_NEAR(kept.again - kept.working, layer, 0.06 * layer);
}

TEST(KeptActivations, OfALargerModelFollowFromSmallerOnes) {
  for (const char* activation : {"relu", "swiglu"}) {
    SCOPED_TRACE(activation);
    ModelConfig config = small_decoder();
    config.activation = activation;
    expect_counted(config, {.sequences = 6, .length = 64});
    if (test::has_bfloat16_products()) expect_counted(config, {.sequences = 6, .length = 64, .rounded = true});
  }
  for (const char* residual : {"post-ln", "hyper-connections", "residual-dual"}) {
    SCOPED_TRACE(residual);
    ModelConfig config = small_decoder();
    config.residual = residual;
    expect_counted(config, {.sequences = 3, .length = 128});
    expect_counted(config, {.sequences = 3, .length = 128, .recomputed = true});
  }
  for (const char* positions : {"rotary", "transformer-xl"}) {
    SCOPED_TRACE(positions);
    ModelConfig config = small_decoder();
    config.positions = positions;
    config.head_size = 48;
    config.kv_heads = 2;
    expect_counted(config, {.sequences = 3, .length = 256});
  }
}

TEST(KeptActivations, OfOtherModelsAreAnError) {
  ModelConfig config = small_decoder();
  config.kind = "encoder";
  EXPECT_THROW(kept_activations(config, {}), Error);
  config = small_decoder();
  config.attention = "linear";
  EXPECT_THROW(kept_activations(config, {}), Error);
}

}  // namespace
}  // namespace plumb::plan
