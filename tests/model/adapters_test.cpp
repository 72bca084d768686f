// Models with adapters: at initialization, and with adapters merged into their matrices.
#include <gtest/gtest.h>

#include <cmath>

#include "plumb/base/error.h"
#include "plumb/model/encoder.h"
#include "plumb/model/merged_adapters.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

ModelConfig adapted_encoder(int64_t rank) {
  ModelConfig config;
  config.kind = "encoder";
  config.d_model = 24;
  config.feed_forward = 20;
  config.heads = 4;
  config.kv_heads = 2;
  config.encoder_layers = 2;
  config.source_vocabulary = 11;
  config.labels = 3;
  config.lora = {rank, 6, {"query", "key", "value", "output"}};
  return config;
}

Batch two_adapted_sequences() {
  Batch batch;
  batch.source = {1, 5, 6, 2, 7, 2, 1, 8, 2};
  batch.source_layout = Ragged({6, 3});
  batch.labels = {2, 0};
  return batch;
}

Tensor adapted_logits(Encoder& model) { return model.class_logits(two_adapted_sequences()); }

TEST(Adapters, ChangeNothingAtTheBeginning) {
  Encoder plain(adapted_encoder(0), at::kDouble), adapted(adapted_encoder(5), at::kDouble);
  plain.initialize(7);
  adapted.initialize(7);
  EXPECT_EQ(adapted.parameters().count() - plain.parameters().count(), 2 * 5 * ((24 + 24) + 2 * (24 + 12) + (24 + 24)));
  EXPECT_LT((adapted_logits(adapted) - adapted_logits(plain)).abs().max().item<double>(), 1e-14);
  // A is not 0, so that B has a gradient.
  double squares = 0;
  int64_t elements = 0;
  for (const Parameter& parameter : adapted.parameters().all()) {
    if (parameter.name.ends_with("_lora.b")) {
      EXPECT_EQ(parameter.value.detach().abs().max().item<double>(), 0) << parameter.name;
    }
    if (!parameter.name.ends_with("_lora.a")) continue;
    squares += parameter.value.detach().square().sum().item<double>();
    elements += parameter.value.numel();
  }
  EXPECT_EQ(elements, 2 * 4 * 5 * 24);
  EXPECT_NEAR(squares / static_cast<double>(elements), 1.0 / 24, 0.2 / 24);  // 4 standard deviations
}

TEST(Adapters, AreMergedIntoTheMatrices) {
  const auto all_adapted = [](int64_t rank) {
    ModelConfig config = adapted_encoder(rank);
    config.activation = "swiglu";
    config.attention_gate = true;
    for (const char* matrix : {"gate", "feed_forward_in", "feed_forward_out"})
      config.lora.matrices.emplace_back(matrix);
    return config;
  };
  Encoder plain(all_adapted(0), at::kDouble), adapted(all_adapted(5), at::kDouble);
  EXPECT_EQ(adapted.parameters().all().size() - plain.parameters().all().size(), 2U * 2 * 8);  // q, k, v, …; 2 layers
  adapted.parameters().flat().copy_(testing::random_tensor({adapted.parameters().count()}, 3, 0.3));
  const NamedTensors saved = named_values(adapted.parameters());
  NamedTensors detached;
  for (const auto& [name, value] : saved) detached.emplace_back(name, value.detach().clone());
  load_parameters(plain.parameters(), merge_adapters(detached, adapted.config().lora, "test"), "test");
  EXPECT_LT((adapted_logits(adapted) - adapted_logits(plain)).abs().max().item<double>(), 1e-11);
  for (size_t i = 0; i < detached.size(); ++i) EXPECT_TRUE(at::equal(detached[i].second, saved[i].second));
  for (const char* half : {"0.self_attn.k_lora.a", "0.self_attn.k_lora.b", "1.linear3_lora.a"}) {
    NamedTensors incomplete = detached;
    std::erase_if(incomplete, [&](const auto& entry) { return entry.first.ends_with(half); });
    EXPECT_THROW((void)merge_adapters(incomplete, adapted.config().lora, "test"), Error) << half;
  }
}

TEST(Adapters, ARecurrentModelHasNone) {
  ModelConfig config;
  config.kind = "awd-lstm";
  config.target_vocabulary = 9;
  config.lora.rank = 2;
  EXPECT_THROW((void)make_model(config), Error);
}

TEST(Adapters, DoNotChangeMatricesOfUnitVectors) {
  ModelConfig config = adapted_encoder(2);
  config.residual = "ngpt";
  EXPECT_THROW((void)make_model(config), Error);
}

}  // namespace
}  // namespace plumb
