// Memory kept by a forward pass: the formulas compared with the bytes held between a real forward pass and its backward
// pass.
#include "plumb/plan/kept_activations.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
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
  config.decoder_layers = 3;
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

TEST(KeptActivations, AreCountedForEachFeedForward) {
  PLUMB_REQUIRE_KERNELS();  // reference operations keep other tensors
  for (const char* activation : {"relu", "gelu", "gelu-tanh", "silu", "swiglu", "geglu", "geglu-tanh"}) {
    SCOPED_TRACE(activation);
    ModelConfig config = small_decoder();
    config.activation = activation;
    expect_counted(config, {.sequences = 6, .length = 64});
    if (test::has_bfloat16_products()) expect_counted(config, {.sequences = 6, .length = 64, .rounded = true});
  }
}

TEST(KeptActivations, AreCountedForEachSchemeNormAndPosition) {
  PLUMB_REQUIRE_KERNELS();  // reference operations keep other tensors
  for (const char* residual : {"pre-ln", "post-ln"}) {
    for (const char* norm : {"layernorm", "rmsnorm"}) {
      for (const char* positions : {"none", "sinusoidal", "learned", "rotary", "transformer-xl"}) {
        SCOPED_TRACE(std::string(residual) + " " + norm + " " + positions);
        ModelConfig config = small_decoder();
        config.residual = residual;
        config.norm = norm;
        config.positions = positions;
        // Long enough for the graph of each sequence, about 40 kB per layer, to be negligible.
        expect_counted(config, {.sequences = 2, .length = 256});
      }
    }
  }
}

TEST(KeptActivations, AreCountedForOtherHeads) {
  PLUMB_REQUIRE_KERNELS();  // reference operations keep other tensors
  for (const char* positions : {"none", "rotary", "transformer-xl"}) {
    SCOPED_TRACE(positions);
    ModelConfig config = small_decoder();
    config.positions = positions;
    config.head_size = 48;
    expect_counted(config, {.sequences = 3, .length = 128});
    config.kv_heads = 2;
    expect_counted(config, {.sequences = 3, .length = 128});
    if (test::has_bfloat16_products()) expect_counted(config, {.sequences = 3, .length = 128, .rounded = true});
  }
}

TEST(KeptActivations, OfUnknownLayersAreAnError) {
  ModelConfig config = small_decoder();
  config.residual = "hyper-connections";
  EXPECT_THROW(kept_activations(config, {}), Error);
  config = small_decoder();
  config.attention = "linear";
  EXPECT_THROW(kept_activations(config, {}), Error);
  config = small_decoder();
  config.attention_gate = true;
  EXPECT_THROW(kept_activations(config, {}), Error);
  config = small_decoder();
  config.lora.rank = 2;
  EXPECT_THROW(kept_activations(config, {}), Error);
}

}  // namespace
}  // namespace plumb::plan
