// Arithmetic counted by hand, matrix by matrix.
#include "plumb/model/flops.h"

#include <gtest/gtest.h>

namespace plumb {
namespace {

constexpr int64_t kWidth = 12, kInner = 20, kVocabulary = 31;

ModelConfig counted_model(const std::string& kind) {
  ModelConfig config;
  config.kind = kind;
  config.d_model = kWidth;
  config.feed_forward = kInner;
  config.heads = 3;
  config.encoder_layers = 2;
  config.decoder_layers = 3;
  config.source_vocabulary = 29;
  config.target_vocabulary = kVocabulary;
  return config;
}

/// Sentences of 5 and 2 source tokens, with 3 and 4 target tokens, all of them predicted.
Batch two_pairs() {
  Batch batch;
  for (const auto& [source, target] : {std::pair{5, 3}, std::pair{2, 4}}) {
    batch.source_layout.append(source);
    batch.target_layout.append(target);
    batch.source.insert(batch.source.end(), static_cast<size_t>(source), 4);
    batch.target_input.insert(batch.target_input.end(), static_cast<size_t>(target), 4);
    batch.labels.insert(batch.labels.end(), static_cast<size_t>(target), 4);
  }
  return batch;
}

TEST(Flops, OfAnEncoderDecoder) {
  const auto model = make_model(counted_model("encoder-decoder"));
  const double source = 7, target = 7, d = kWidth, f = kInner;
  // Self-attention: q, k, v and output. Cross-attention: q and output of the target, k and v of the source.
  const double encoder = 2 * (source * (4 * d * d + 2 * d * f) + 2 * d * (5 * 5 + 2 * 2));
  const double decoder =
      3 * (target * (6 * d * d + 2 * d * f) + source * 2 * d * d + 2 * d * ((3 * 3 + 4 * 4) / 2.0 + 3 * 5 + 4 * 2));
  EXPECT_DOUBLE_EQ(FlopCounter(*model).forward(two_pairs()), 2 * (encoder + decoder + target * d * kVocabulary));
}

TEST(Flops, OfAGatedDecoderWithSharedKeys) {
  ModelConfig config = counted_model("decoder");
  config.activation = "swiglu";
  config.kv_heads = 1;  // of 3: keys and values of a third of the width
  const auto model = make_model(config);
  const double target = 7, d = kWidth, f = kInner;
  const double layers = 3 * (target * ((2 + 2.0 / 3) * d * d + 3 * d * f) + 2 * d * (3 * 3 + 4 * 4) / 2.0);
  Batch batch = two_pairs();
  batch.source.clear();
  batch.source_layout = {};
  EXPECT_DOUBLE_EQ(FlopCounter(*model).forward(batch), 2 * (layers + target * d * kVocabulary));
}

// Three heads of size 4, and positions that read and write a matrix of features·4 numbers in each.
TEST(Flops, OfFastWeights) {
  ModelConfig config = counted_model("decoder");
  config.positions = "sinusoidal";
  Batch batch = two_pairs();
  batch.source.clear();
  batch.source_layout = {};
  const double target = 7, d = kWidth, f = kInner, products = 4 * d * d + 2 * d * f;
  const auto expect = [&](double mixing, double more = 0) {
    EXPECT_DOUBLE_EQ(FlopCounter(*make_model(config)).forward(batch),
                     2 * (3 * target * (products + more + mixing) + target * d * kVocabulary))
        << config.attention;
  };
  for (const char* kind : {"linear", "fwp-1991"}) {
    config.attention = kind;
    expect(3 * (4 * 4 + 4 * 4));
  }
  config.attention = "dpfp";  // 2·ν·4 features, ν = 3
  expect(3 * (24 * 4 + 24 * 4));
  config.attention = "delta";  // reads, corrects and reads; β from x
  expect(3 * 3 * 24 * 4, 3 * d);
  config.attention = "gated-delta";  // and the decay from x
  expect(3 * 3 * 4 * 4, 2 * 3 * d);
  config.attention = "favor";  // ⌈4·ln 4⌉ = 6 features, each a product of 4 elements of the query and of the key
  expect(3 * (2 * 6 * 4 + 2 * 6 * 4));
  // Cross-attention writes what the source has, and reads for the target. One key head has its features computed once.
  config.kind = "encoder-decoder";
  config.kv_heads = 1;
  ModelConfig softmax = config;
  softmax.attention = "softmax";
  const Batch pairs = two_pairs();
  const double scores = 2 * (2 * d * (25 + 4)) + 3 * (2 * d * ((9 + 16) / 2.0 + 15 + 8));
  const double query = 3 * (24 + 24), key = 3 * 24 + 24;
  EXPECT_DOUBLE_EQ(FlopCounter(*make_model(config)).forward(pairs) - FlopCounter(*make_model(softmax)).forward(pairs),
                   2 * ((2 + 3 + 3) * 7 * (query + key) - scores));
  // With three more source tokens: the encoder, and keys, values and β of each cross-attention.
  config.kv_heads = 3;
  config.attention = "delta";
  Batch longer = pairs;
  longer.source_layout.append(3);
  longer.target_layout.append(0);
  longer.source.insert(longer.source.end(), 3, 4);
  EXPECT_DOUBLE_EQ(FlopCounter(*make_model(config)).forward(longer) - FlopCounter(*make_model(config)).forward(pairs),
                   2 * 3 * (2 * (products + 3 * d + 3 * 3 * 24 * 4) + 3 * (2 * d * d + 3 * d + 2 * 3 * 24 * 4)));
}

TEST(Flops, OfAdapters) {
  ModelConfig config = counted_model("encoder-decoder");
  const double without = FlopCounter(*make_model(config)).forward(two_pairs());
  config.lora.rank = 2;
  config.lora.matrices = {"query", "key"};
  const double source = 7, target = 7, both = 2.0 * 2 * kWidth;  // A and B
  // Query and key of two encoder and three decoder layers, then the query of the target and the key of the source.
  const double added = both * (2 * source * 2 + 3 * target * 2 + 3 * (target + source));
  Batch longer = two_pairs();
  EXPECT_DOUBLE_EQ(FlopCounter(*make_model(config)).forward(longer), without + 2 * added);
  // With three more source tokens: the encoder's adapters, and the keys of each cross-attention.
  longer.source_layout.append(3);
  longer.target_layout.append(0);
  longer.source.insert(longer.source.end(), 3, 4);
  const double adapters = FlopCounter(*make_model(config)).forward(longer);
  config.lora = {};
  EXPECT_DOUBLE_EQ(adapters - FlopCounter(*make_model(config)).forward(longer), 2 * (added + both * 3 * (2 * 2 + 3)));
}

TEST(Flops, OfAdaptersOfFeedForwardAndGate) {
  ModelConfig config = counted_model("encoder-decoder");
  config.attention_gate = true;
  const double without = FlopCounter(*make_model(config)).forward(two_pairs());
  config.lora = {2, 8, {"gate", "feed_forward_in", "feed_forward_out"}};
  const double source = 7, target = 7, gate = 2.0 * 2 * kWidth, feed_forward = 2.0 * (kWidth + kInner) * 2;
  // The gate of a cross-attention reads the target.
  const double added = source * 2 * (gate + feed_forward) + target * 3 * (2 * gate + feed_forward);
  EXPECT_DOUBLE_EQ(FlopCounter(*make_model(config)).forward(two_pairs()), without + 2 * added);
}

TEST(Flops, OfARecurrentModel) {
  ModelConfig config = counted_model("awd-lstm");
  config.embedding_size = 10;
  config.hidden_size = 14;
  config.layers = 2;
  const auto model = make_model(config);
  Batch batch = two_pairs();
  batch.source.clear();
  batch.source_layout = {};
  const double token = 4 * 14 * (10 + 14) + 4 * 10 * (14 + 10);
  EXPECT_DOUBLE_EQ(FlopCounter(*model).forward(batch), 2 * 7 * (token + 10.0 * kVocabulary));
}

TEST(Flops, OfAClassifiersHead) {
  // A token does the same work with and without a head: the difference is in the labels.
  ModelConfig config = counted_model("encoder");
  config.labels = 3;
  config.pooling = "mean";
  Batch batch = two_pairs();
  batch.target_input.clear();
  batch.target_layout = {};
  batch.labels = {0, 2};
  const double plain = FlopCounter(*make_model(config)).forward(batch);
  config.pooler = true;
  EXPECT_DOUBLE_EQ(FlopCounter(*make_model(config)).forward(batch) - plain, 2.0 * 2 * kWidth * kWidth);
  config.pooler = false;
  config.pooling = "concat";  // the last, the largest and the mean
  EXPECT_DOUBLE_EQ(FlopCounter(*make_model(config)).forward(batch) - plain, 2.0 * 2 * (3 - 1) * kWidth * 3);
}

}  // namespace
}  // namespace plumb
