// Memory and time compared with tables and formulas of papers.
#include "plumb/plan/training.h"

#include <gtest/gtest.h>

#include <set>

#include "plumb/base/error.h"

namespace plumb::plan {
namespace {

/// GPT-3 as trained with Megatron.
ModelCost gpt_3() {
  ModelConfig config;
  config.kind = "decoder";
  config.decoder_layers = 96;
  config.d_model = 12288;
  config.heads = 96;
  config.feed_forward = 49'152;
  config.target_vocabulary = 51200;
  return cost_of(config);
}

// Rajbhandari et al. 2020, figure 1: 7.5 billion parameters over 64 devices.
TEST(Plan, StatesAreThoseOfZeRO) {
  const double expected[] = {120, 31.4, 16.6, 1.88};
  for (int zero = 0; zero <= 3; ++zero) {
    const double gigabytes = state_bytes(7.5e9, Precision::mixed, zero, 64).states() / 1e9;
    EXPECT_NEAR(gigabytes, expected[zero], 0.006 * expected[zero]) << zero;
  }
}

// Rae et al. 2021: 2.547 TiB of weights and optimizer state for 280 billion parameters in bfloat16.
TEST(Plan, StatesAreThoseOfGopher) {
  const Memory memory = state_bytes(280e9, Precision::bfloat16, 0, 1);
  EXPECT_NEAR((memory.weights + memory.optimizer) / (1024.0 * 1024 * 1024 * 1024), 2.547, 0.001);
}

// Korthikanti et al. 2022, table 2: bytes of activations per layer.
TEST(Plan, ActivationsAreThoseOfKorthikanti) {
  const ModelCost model = gpt_3();
  const double s = 2048, b = 4, h = 12288, a = 96;
  for (const double t : {1.0, 8.0}) {
    const auto bytes = [&](Recompute recompute) {
      return activation_bytes(model, 2048, 4, static_cast<int64_t>(t), recompute, 2);
    };
    EXPECT_DOUBLE_EQ(bytes(Recompute::none), s * b * h * (34 + 5 * a * s / h) / t);
    EXPECT_DOUBLE_EQ(bytes(Recompute::attention), s * b * h * 34 / t);
    EXPECT_DOUBLE_EQ(bytes(Recompute::layers), 2 * s * b * h / t);
  }
}

// The bubble is (p − 1)/m of the computation (Narayanan et al. 2021, section 2.2.1).
TEST(Plan, StagesWaitForTheFirstAndTheLastMicroBatch) {
  const TrainingJob job{2048, int64_t{2048} * 128, 0, Precision::mixed};
  const Estimate found = estimate(gpt_3(), job, {.devices = 64}, {1, 8, 8, 0, 1, Recompute::layers});
  EXPECT_NEAR(found.time.bubble / found.time.compute, 7.0 / 128, 1e-12);
}

// The first stage has the embedding and the last the output matrix, whether it is a copy or not.
TEST(Plan, StagesHaveTheEmbeddingOrTheOutputMatrix) {
  ModelConfig config;
  config.kind = "decoder";
  config.decoder_layers = 4;
  config.target_vocabulary = 50'000;
  const auto weights = [&](const std::string& shared, int64_t pipeline) {
    config.share_embeddings = shared;
    const TrainingJob job{128, 1024, 0, Precision::float32};
    return estimate(cost_of(config), job, {.devices = pipeline}, {1, 1, pipeline, 0, 1, Recompute::none})
        .memory.weights;
  };
  EXPECT_DOUBLE_EQ(weights("none", 2), weights("target", 2));
  EXPECT_DOUBLE_EQ(weights("none", 1) - weights("target", 1), 4.0 * 50'000 * static_cast<double>(config.d_model));
}

// Compute only: the work of four forward passes over the machine's rate.
TEST(Plan, TimeIsOperationsOverRate) {
  const ModelCost model = gpt_3();
  const TrainingJob job{2048, int64_t{2048} * 16, 0, Precision::mixed};
  const Hardware hardware{.devices = 8, .flops = 1e15, .efficiency = 0.5};
  const Estimate found = estimate(model, job, hardware, {1, 8, 1, 0, 2, Recompute::layers});
  const double operations = (model.training_flops(2048) + model.layers_flops(2048)) * 2048 * 16;
  EXPECT_NEAR(found.time.compute, operations / (8 * 0.5e15), 1e-9 * found.time.compute);
  EXPECT_EQ(found.time.bubble, 0);
  EXPECT_EQ(found.time.data, 0);
  // Two all-reduces in each of forward, recomputation and backward pass of a layer, one of the embedding and one of the
  // output, over 8 devices.
  EXPECT_DOUBLE_EQ(found.tensor_bytes, 8.0 * (96 * 6 + 2) * (2.0 * 2 * 2048 * 12288 * 2) * 7 / 8);
}

TEST(Plan, ExchangesGradientsAsInARing) {
  const ModelCost model = gpt_3();
  const TrainingJob job{2048, int64_t{2048} * 64, 0, Precision::mixed};
  const Estimate plain = estimate(model, job, {.devices = 64}, {64, 1, 1, 1, 1, Recompute::layers});
  EXPECT_NEAR(plain.data_bytes, 2.0 * 2 * static_cast<double>(model.parameters) * 63 / 64, 1e6);
  const Estimate sharded = estimate(model, job, {.devices = 64}, {64, 1, 1, 3, 1, Recompute::layers});
  EXPECT_NEAR(sharded.data_bytes / plain.data_bytes, 1.5, 1e-9);  // Rajbhandari et al., section 7.2.2
}

// A device that keeps only its part of the gradients sends the rest of every micro-batch.
TEST(Plan, ZeroTwoAndThreeScatterTheGradientsOfEveryMicroBatch) {
  const ModelCost model = gpt_3();
  const TrainingJob job{2048, int64_t{2048} * 64 * 8, 0, Precision::mixed};
  const auto bytes = [&](int zero) {
    return estimate(model, job, {.devices = 64}, {64, 1, 1, zero, 1, Recompute::layers}).data_bytes;
  };
  const double half = 2.0 * static_cast<double>(model.parameters) * 63 / 64;  // a scatter, or a gather
  EXPECT_NEAR(bytes(0), 2 * half, 1e6);
  EXPECT_NEAR(bytes(1), 2 * half, 1e6);
  EXPECT_NEAR(bytes(2), 8 * half + half, 1e6);
  EXPECT_NEAR(bytes(3), 8 * half + 8 * 2 * half, 1e6);
}

// What is kept in parts is whole while it is used: a layer, and what is outside of layers. It is whole a second time as
// received; and gradients of a layer are computed while those of another are exchanged.
TEST(Plan, ZeroTwoAndThreeCountWhatIsWholeAtOnce) {
  const ModelCost model = gpt_3();
  const TrainingJob job{2048, int64_t{2048} * 64, 0, Precision::float32};
  const auto memory = [&](int zero) {
    return estimate(model, job, {.devices = 4}, {4, 1, 1, zero, 1, Recompute::layers}).memory;
  };
  const auto all = static_cast<double>(model.parameters);
  const double outside = all - model.layer_parameters * static_cast<double>(model.layers);
  const auto part = [&](double layers) { return 4 * (all / 4 + outside + layers * model.layer_parameters); };
  EXPECT_NEAR(memory(1).gradients, 4 * all, 1);
  EXPECT_NEAR(memory(2).gradients, part(3), 1);
  EXPECT_NEAR(memory(2).weights, 4 * all, 1);
  EXPECT_NEAR(memory(3).weights, part(2), 1);
}

// With a single micro-batch, the last stage holds as many activations as the first, and the logits.
TEST(Plan, LogitsCountInPipelinesToo) {
  ModelCost model = gpt_3();
  model.outputs = 1'000'000;
  const Hardware hardware{.devices = 8};
  const auto activations = [&](int64_t micro_batches) {
    const TrainingJob job{2048, 2048 * micro_batches, 0, Precision::mixed};
    return estimate(model, job, hardware, {1, 1, 8, 0, 1, Recompute::attention}).memory.activations;
  };
  const double stage = 12 * activation_bytes(model, 2048, 1, 1, Recompute::attention, 2);
  EXPECT_NEAR(activations(1), stage + 2048 * (2.0 * 2 * 12288 + 4e6), 1);
  EXPECT_NEAR(activations(64), 8 * stage, 1);
}

TEST(Plan, HeadsOfKeysAndValuesAreDividedToo) {
  ModelCost model = gpt_3();
  model.kv_heads = 8;
  const TrainingJob job{2048, int64_t{2048} * 64, 0, Precision::mixed};
  EXPECT_THROW(estimate(model, job, {.devices = 16}, {1, 16, 1, 0, 1, Recompute::none}), Error);
  for (const Estimate& each : search(model, job, {.devices = 32})) EXPECT_LE(each.layout.tensor, 8);
}

TEST(Plan, SearchFindsWhatFits) {
  const TrainingJob job{2048, int64_t{2048} * 512, 0, Precision::mixed};
  const Hardware hardware{.devices = 512};
  const std::vector<Estimate> found = search(gpt_3(), job, hardware);
  ASSERT_TRUE(found.front().fits);
  for (const Estimate& each : found) {
    EXPECT_EQ(each.layout.devices(), 512);
    EXPECT_EQ(each.fits, each.memory.total() <= hardware.memory);
    if (each.fits) {
      EXPECT_LE(found.front().time.total(), each.time.total());
    }
  }
  // It does not fit on a single device.
  const std::vector<Estimate> alone = search(gpt_3(), job, {.devices = 1});
  EXPECT_FALSE(alone.front().fits);
  EXPECT_GT(alone.front().memory.states(), 2.7e12);
}

// Also those after one that does not fit: 5 divides neither the devices nor the heads, 6 both.
TEST(Plan, SearchTriesEveryDivisor) {
  const TrainingJob job{2048, int64_t{2048} * 64, 0, Precision::mixed};
  std::set<int64_t> tensor, pipeline;
  for (const Estimate& each : search(gpt_3(), job, {.devices = 12})) {
    tensor.insert(each.layout.tensor);
    pipeline.insert(each.layout.pipeline);
  }
  EXPECT_EQ(tensor, (std::set<int64_t>{1, 2, 3, 4, 6, 12}));
  EXPECT_EQ(pipeline, (std::set<int64_t>{1, 2, 3, 4, 6, 12}));
}

TEST(Plan, SaysWhatCannotBeDivided) {
  const TrainingJob job{2048, int64_t{2048} * 4, 0, Precision::mixed};
  EXPECT_THROW(estimate(gpt_3(), job, {}, {1, 7, 1, 0, 1, Recompute::none}), Error);
  EXPECT_THROW(estimate(gpt_3(), job, {}, {1, 1, 7, 0, 1, Recompute::none}), Error);
  EXPECT_THROW(estimate(gpt_3(), job, {}, {8, 1, 1, 0, 1, Recompute::none}), Error);
  EXPECT_THROW(search(gpt_3(), job, {.devices = 1547}), Error);
  EXPECT_THROW(precision_named("float8"), Error);
  ModelConfig recurrent;
  recurrent.kind = "awd-lstm";
  recurrent.target_vocabulary = 100;
  EXPECT_THROW(cost_of(recurrent), Error);
}

}  // namespace
}  // namespace plumb::plan
