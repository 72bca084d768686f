// Similarity of tokens and attention along a training run compared with loops.
#include "plumb/analysis/watch/activations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "along_training.h"
#include "plumb/analysis/attention_scores.h"
#include "plumb/analysis/token_similarity.h"
#include "plumb/nn/residual/residual.h"
#include "support/batches.h"

namespace plumb {
namespace {

using ActivationsAlongTraining = test::AlongTraining;

TEST_F(ActivationsAlongTraining, SimilarityIsTheMeanCosineOfAllPairs) {
  run_.model.encoder_layers = run_.model.decoder_layers = 2;
  const auto initial = model();
  const std::vector<Batch> batches = {examples({0, 1, 2}), examples({3, 4})};
  TokenSimilarity similarity;
  std::map<ActivationPoint, std::pair<double, double>> expected;  // sum of cosines, pairs
  for (const Batch& batch : batches) {
    ForwardContext context(Pass::measurement);
    similarity.see(*initial, batch, context);
    EXPECT_FALSE(context.watched());
    context.watch([&](const ActivationPoint& point, const Tensor& x) {
      const Ragged& layout = point.id.stack == StackKind::encoder ? batch.source_layout : batch.target_layout;
      for (int64_t s = 0; s < layout.sequences(); ++s) {
        for (int64_t i = 0; i < layout.length(s); ++i) {
          for (int64_t j = 0; j < layout.length(s); ++j) {
            if (i == j) continue;
            const Tensor a = x[layout.begin(s) + i], b = x[layout.begin(s) + j];
            expected[point].first += (a.dot(b) / (a.norm() * b.norm())).item<double>();
            expected[point].second += 1;
          }
        }
      }
    });
    initial->states(batch, context);
  }
  const std::map<LayerId, double> found = similarity.means();
  EXPECT_EQ(found.size(), 6U);  // four layers, two results
  for (const auto& [layer, mean] : found) {
    const ActivationPoint point =
        layer.layer ? ActivationPoint{{layer.stack, layer.layer, SubLayerKind::self_attention}, Point::input}
                    : ActivationPoint{layer, Point::result};
    ASSERT_EQ(expected.count(point), 1U) << to_string(point);
    EXPECT_NEAR(mean, expected[point].first / expected[point].second, 1e-12) << to_string(point);
  }
}

/// The mean cosine of all pairs of different rows within a sequence.
double mean_cosine(const Tensor& rows, const Ragged& layout) {
  double sum = 0, pairs = 0;
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    for (int64_t i = layout.begin(s); i < layout.begin(s + 1); ++i) {
      for (int64_t j = layout.begin(s); j < layout.begin(s + 1); ++j) {
        if (i == j) continue;
        sum += (rows[i].dot(rows[j]) / (rows[i].norm() * rows[j].norm())).item<double>();
        pairs += 1;
      }
    }
  }
  return sum / pairs;
}

// What the output layer reads can be had without watching, in all schemes: the states of a batch that labels every
// token. What the next layer reads after Pre-LN's norms, from the stream.
TEST_F(ActivationsAlongTraining, SimilarityIsThatOfWhatIsRead) {
  run_.model.kind = "decoder";
  run_.model.decoder_layers = 2;
  for (const std::string& residual : residual_schemes().names()) {
    SCOPED_TRACE(residual);
    run_.model.residual = residual;
    const auto initial = model();
    for (const Parameter& each : initial->parameters().all()) {  // norms and scales that do something
      if (each.value.dim() == 1) each.value.detach().add_(at::rand_like(each.value), 0.5);
    }
    Batch batch;
    append(batch, std::vector<int32_t>{}, std::vector<int32_t>{4, 5, 6, 7, 5}, 0);
    append(batch, std::vector<int32_t>{}, std::vector<int32_t>{8, 6, 4}, 0);
    batch.source.clear();
    batch.source_layout = {};
    ForwardContext context(Pass::measurement);
    TokenSimilarity similarity;
    similarity.see(*initial, batch, context);
    const std::map<LayerId, double> found = similarity.means();
    ASSERT_EQ(found.size(), 3U);
    ForwardContext again(Pass::measurement);
    std::map<ActivationPoint, Tensor> shown;
    again.watch([&](const ActivationPoint& point, const Tensor& x) { shown[point] = x.detach(); });
    const at::NoGradGuard no_graph;
    const Tensor states = initial->states(batch, again);
    ASSERT_EQ(states.size(0), batch.target_layout.tokens());
    EXPECT_NEAR(found.at({StackKind::decoder}), mean_cosine(states, batch.target_layout), 1e-12);
    if (residual != "pre-ln") continue;
    const auto value = [&](const char* name) { return initial->parameters().at(name).value.detach(); };
    const Tensor stream = shown.at({{StackKind::decoder, 0, SubLayerKind::feed_forward}, Point::stream});
    const Tensor read = at::layer_norm(stream, {stream.size(1)}, value("decoder.layers.1.norm1.weight"),
                                       value("decoder.layers.1.norm1.bias"), run_.model.norm_eps);
    EXPECT_NEAR(found.at({StackKind::decoder, 1}), mean_cosine(read, batch.target_layout), 1e-12);
  }
}

TEST_F(ActivationsAlongTraining, ScoresAreTheArgumentOfTheSoftmax) {
  // The outputs of attention, recomputed from the observed scores and the values projected by hand.
  for (const char* positions : {"sinusoidal", "alibi", "rotary"}) {
    SCOPED_TRACE(positions);
    run_.model.positions = positions;
    run_.model.heads = 2;
    run_.model.kv_heads = 1;
    const auto initial = model();
    const Batch batch = examples({0, 1, 2});
    ForwardContext context(Pass::measurement);
    std::map<LayerId, std::vector<Tensor>> scores;
    std::map<LayerId, Tensor> inputs, outputs;
    Tensor memory;
    context.watch_scores([&](const LayerId& id, const Tensor& seen) { scores[id].push_back(seen); });
    context.watch([&](const ActivationPoint& point, const Tensor& x) {
      if (point.point == Point::input && point.id.sub_layer) inputs[point.id] = x;
      if (point.point == Point::output && point.id.sub_layer) outputs[point.id] = x;
      if (point.point == Point::result && point.id.stack == StackKind::encoder) memory = x;
    });
    initial->states(batch, context);
    ASSERT_EQ(scores.size(), 3U);
    for (const auto& [id, by_sequence] : scores) {
      const bool cross = id.sub_layer == SubLayerKind::cross_attention;
      const bool encoder = id.stack == StackKind::encoder;
      const std::string prefix = to_string(LayerId{id.stack, id.layer}) + (cross ? ".multihead_attn" : ".self_attn");
      const auto value = [&](const char* name) { return initial->parameters().at(prefix + name).value.detach(); };
      const Tensor from = cross ? memory : inputs[id];
      const Ragged& layout = encoder || cross ? batch.source_layout : batch.target_layout;
      const Ragged& queries = encoder ? batch.source_layout : batch.target_layout;
      // d = 4, two heads of two features that share one key-value head.
      const Tensor values =
          at::matmul(from, value(".in_proj_weight").narrow(0, 6, 2).t()) + value(".in_proj_bias").narrow(0, 6, 2);
      ASSERT_EQ(static_cast<int64_t>(by_sequence.size()), layout.sequences());
      for (int64_t s = 0; s < layout.sequences(); ++s) {
        const Tensor seen = by_sequence[static_cast<size_t>(s)];
        EXPECT_FALSE(seen.requires_grad());
        const Tensor weights = seen.softmax(-1);  // (2, queries, keys)
        EXPECT_EQ(weights.size(1), queries.length(s));
        if (!encoder && !cross) {
          EXPECT_EQ(weights.triu(1).abs().sum().item<double>(), 0);
        }
        const Tensor mixed = at::matmul(weights, values.narrow(0, layout.begin(s), layout.length(s)));
        const Tensor out =
            at::matmul(mixed.transpose(0, 1).reshape({queries.length(s), 4}), value(".out_proj.weight").t()) +
            value(".out_proj.bias");
        const Tensor expected = outputs[id].detach().narrow(0, queries.begin(s), queries.length(s));
        EXPECT_LT((out - expected).abs().max().item<double>(), 1e-12) << to_string(id);
      }
    }
  }
}

TEST(AttentionMeter, EntropyAndLargestLogitByLoops) {
  const LayerId first{StackKind::encoder, 0, SubLayerKind::self_attention};
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor scores[2] = {
      at::tensor({0.5, -1.0, 2.0, 0.0, 3.5, 1.0}, at::kDouble).view({2, 1, 3}),
      at::tensor({1.0, -infinity, -2.0, 0.25, 7.0, -infinity, 0.0, 0.0}, at::kDouble).view({2, 2, 2})};
  AttentionMeter meter;
  double sums[2] = {0, 0}, largest = -infinity, queries = 0;
  for (const Tensor& each : scores) {
    meter.see(first, each);
    for (int64_t h = 0; h < 2; ++h) {
      for (int64_t q = 0; q < each.size(1); ++q) {
        double total = 0, keys = 0;
        for (int64_t k = 0; k < each.size(2); ++k) {
          total += std::exp(each[h][q][k].item<double>());
          keys += std::isfinite(each[h][q][k].item<double>()) ? 1 : 0;
        }
        if (h == 0 && keys > 1) queries += 1;
        for (int64_t k = 0; k < each.size(2); ++k) {
          const double logit = each[h][q][k].item<double>();
          const double p = std::exp(logit) / total;
          if (p > 0 && keys > 1) sums[h] -= p * std::log(p) / std::log(keys);
          largest = std::max(largest, logit);
        }
      }
    }
  }
  const AttentionProfile found = meter.profiles().at(first);
  EXPECT_EQ(queries, 2);  // the first query of the second sequence sees one key
  EXPECT_NEAR(found.relative_entropy, (sums[0] + sums[1]) / 4, 1e-12);
  EXPECT_NEAR(found.lowest_head_entropy, std::min(sums[0], sums[1]) / 2, 1e-12);
  EXPECT_EQ(found.largest_logit, 7);
  EXPECT_EQ(largest, 7);
}

TEST(AttentionMeter, EqualWeightsHaveTheRelativeEntropyOneAtEveryLength) {
  const double infinity = std::numeric_limits<double>::infinity();
  const LayerId id{StackKind::decoder, 0, SubLayerKind::self_attention};
  for (const int64_t length : {2, 5, 40}) {
    AttentionMeter meter;
    const Tensor later = at::ones({length, length}, at::kBool).triu(1);
    meter.see(id, at::full({3, length, length}, 0.7, at::kDouble).masked_fill(later, -infinity));
    EXPECT_NEAR(meter.profiles().at(id).relative_entropy, 1, 1e-12) << length;
    EXPECT_NEAR(meter.profiles().at(id).lowest_head_entropy, 1, 1e-12) << length;
  }
  AttentionMeter one;
  one.see(id, at::zeros({3, 1, 1}, at::kDouble));
  EXPECT_TRUE(std::isnan(one.profiles().at(id).relative_entropy));
}

TEST_F(ActivationsAlongTraining, ActivationsAreThoseOfTheFixedExamples) {
  read_watch("what = \"activations\"\nsplit = \"valid\"\nexamples = 5\n");
  run_.train.batch_tokens = 16;  // several batches
  const auto trained = model();
  int compared = 0;
  test::Moments moments;
  moments.watch = [&](const WatchRecord& record) {
    const std::vector<int64_t> which = {0, 1, 2, 3, 4};
    const Batch batch = task_->dataset("valid")->batch(which);
    TokenSimilarity similarity;
    AttentionMeter meter;
    ForwardContext context(Pass::measurement);
    context.watch_scores(meter.observer());
    similarity.see(*trained, batch, context);
    const auto found = record.find<ActivationMeasurement>();
    ASSERT_TRUE(found) << to_json(record);
    const auto compare = [](const NamedNumbers& numbers, const auto& expected, const auto& value) {
      ASSERT_EQ(numbers.size(), expected.size());
      auto each = numbers.begin();
      for (const auto& [id, one] : expected) {
        EXPECT_EQ(each->first, to_string(id));
        EXPECT_NEAR(each++->second, value(one), 1e-12);
      }
    };
    compare(found->token_cosine, similarity.means(), [](double mean) { return mean; });
    const auto attention = [&](const NamedNumbers& numbers, double AttentionProfile::*part) {
      compare(numbers, meter.profiles(), [part](const AttentionProfile& profile) { return profile.*part; });
    };
    attention(found->relative_entropy, &AttentionProfile::relative_entropy);
    attention(found->lowest_relative_entropy, &AttentionProfile::lowest_head_entropy);
    attention(found->largest_logit, &AttentionProfile::largest_logit);
    ++compared;
  };
  train(*trained, run_.train, *task_, moments, run_.watch);
  EXPECT_EQ(compared, 3);
}

}  // namespace
}  // namespace plumb
