// The normalized sum rule with features given by their logarithms, compared with a softmax over logarithms of sums.
#include "plumb/ops/exponential_rule.h"

#include <gtest/gtest.h>

#include <vector>

#include "plumb/ops/scaled_products.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

using testing::expect_both;
using testing::random_tensor;

/// y_t = Σ_j softmax_j(log Σ_i exp(q_ti + k_ji))·v_j over j ≤ t or, if `last`, over all positions of the sequence.
Tensor by_logarithms(const Tensor& query, const Tensor& key, const Tensor& value, const Ragged& layout, bool last) {
  std::vector<Tensor> sequences;
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    const auto of = [&](const Tensor& x) {
      return x.narrow(0, layout.begin(s), layout.length(s)).to(at::kDouble).transpose(0, 1);
    };
    Tensor scores = at::logsumexp(of(query).unsqueeze(2) + of(key).unsqueeze(1), -1);  // (heads, t, j)
    if (!last) scores = scores.masked_fill(at::ones_like(scores).tril() == 0, -INFINITY);
    sequences.push_back(at::matmul(at::softmax(scores, -1), of(value)).transpose(0, 1));
  }
  return at::cat(sequences, 0);
}

struct LogInputs {
  Tensor query, key, value;
};

/// Logarithms that vary widely: over positions, rising or falling, and over features, with small queries for large keys
/// and vice versa.
std::vector<LogInputs> log_inputs(const Ragged& layout, int64_t heads, int64_t features, int64_t size) {
  const int64_t n = layout.tokens();
  const LogInputs plain = {random_tensor({n, heads, features}, 1, 3), random_tensor({n, heads, features}, 2, 3),
                           random_tensor({n, heads, size}, 3)};
  std::vector<LogInputs> all = {plain};
  const Tensor time = at::arange(n, at::kDouble).view({n, 1, 1});
  const Tensor offset = random_tensor({1, heads, features}, 4, 400);
  for (const double slope : {0.5, -0.5, 20.0, -20.0})
    all.push_back({plain.query, plain.key + slope * time, plain.value});
  all.push_back({plain.query + offset, plain.key - offset, plain.value});
  all.push_back({plain.query, 300 * plain.key, plain.value});
  all.push_back({300 * plain.query, 300 * plain.key, plain.value});
  return all;
}

double furthest(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

const std::vector<std::vector<int64_t>> kLengths = {{5, 1, 3}, {64}, {70, 3, 200, 64, 129}, {128, 128}};

TEST(ExponentialRule, EqualsSoftmaxOverLogarithms) {
  for (const auto& lengths : kLengths) {
    const Ragged layout(lengths);
    size_t which = 0;
    for (const LogInputs& in : log_inputs(layout, 2, 6, 4)) {
      SCOPED_TRACE(which++);
      EXPECT_LT(furthest(ops::exponential_rule(in.query, in.key, in.value, layout),
                         by_logarithms(in.query, in.key, in.value, layout, false)),
                1e-11);
      const Tensor weights = ops::exponential_rule_weights(in.key, in.value, layout);
      EXPECT_EQ(weights.sizes(), at::IntArrayRef({layout.sequences(), 2, 6, 6}));
      EXPECT_LT(furthest(ops::exponential_rule_read(in.query, weights, layout),
                         by_logarithms(in.query, in.key, in.value, layout, true)),
                1e-11);
    }
  }
}

TEST(ExponentialRule, StepsEqualTheWhole) {
  const Ragged layout({90});
  for (const LogInputs& in : log_inputs(layout, 2, 6, 4)) {
    Tensor weights = ops::exponential_rule_start(1, 2, 6, 4, in.key.options());
    std::vector<Tensor> rows;
    for (int64_t t = 0; t < 90; ++t) {
      const auto at = [&](const Tensor& x) { return x.narrow(0, t, 1); };
      rows.push_back(ops::exponential_rule_step(at(in.query), at(in.key), at(in.value), weights));
    }
    EXPECT_LT(furthest(at::cat(rows, 0), by_logarithms(in.query, in.key, in.value, layout, false)), 1e-11);
    EXPECT_LT(furthest(ops::exponential_rule_read(in.query, weights, layout),
                       by_logarithms(in.query, in.key, in.value, layout, true)),
              1e-11);
  }
}

TEST(ExponentialRule, FewerReadersThanWritersAndSequencesWithoutAny) {
  const Ragged writers({3, 0, 2});
  const Ragged readers({2, 1, 0});
  const LogInputs in = log_inputs(writers, 1, 3, 2)[0];
  const Tensor weights = ops::exponential_rule_weights(in.key, in.value, writers);
  const Tensor query = random_tensor({3, 1, 3}, 9, 50);
  const Tensor read = ops::exponential_rule_read(query, weights, readers);
  const Tensor scores = at::logsumexp(
      query.select(1, 0).narrow(0, 0, 2).unsqueeze(1) + in.key.select(1, 0).narrow(0, 0, 3).unsqueeze(0), -1);
  EXPECT_LT(furthest(read.select(1, 0).narrow(0, 0, 2),
                     at::matmul(at::softmax(scores, -1), in.value.select(1, 0).narrow(0, 0, 3))),
            1e-12);
  EXPECT_EQ(read[2].abs().max().item<double>(), 0);  // nothing was written to this sequence
  EXPECT_EQ(
      ops::exponential_rule(query.narrow(0, 0, 0), query.narrow(0, 0, 0), query.narrow(0, 0, 0), Ragged({0})).size(0),
      0);
}

/// Later keys, however large, do not change what a position reads, except for rounding.
TEST(ExponentialRule, DoesNotSeeTheFuture) {
  const Ragged layout({60});
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    for (LogInputs in : log_inputs(layout, 2, 6, 4)) {
      const auto run = [&] {
        return ops::exponential_rule(in.query.to(type), in.key.to(type), in.value.to(type), layout).narrow(0, 0, 31);
      };
      const Tensor before = run().clone();
      in.key = in.key.clone();
      in.key.narrow(0, 31, 29).add_(1e4);
      EXPECT_LT(furthest(run(), before), type == at::kFloat ? 1e-4 : 1e-12);
    }
  }
}

TEST(ExponentialRule, HasGradientsAndSecondOnes) {
  const Ragged layout({3, 9, 10});  // blocks of 16
  const int64_t n = layout.tokens();
  const Tensor query = random_tensor({n, 1, 2}, 1), key = random_tensor({n, 1, 2}, 2),
               value = random_tensor({n, 1, 2}, 3);
  Tensor small_at_first = key.clone();
  for (const int64_t s : {0, 1, 2}) small_at_first.narrow(0, layout.begin(s), 2).sub_(200);
  const Tensor offset = at::tensor({150.0, -150.0}, at::kDouble).view({1, 1, 2});
  const std::vector<std::vector<Tensor>> cases = {
      {query, key, value}, {query, small_at_first, value}, {query + offset, key - offset, value}};
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    expect_both(
        [&](const std::vector<Tensor>& x) {
          return std::vector<Tensor>{
              ops::exponential_rule(x[0], x[1], x[2], layout),
              ops::exponential_rule_read(x[0], ops::exponential_rule_weights(x[1], x[2], layout), layout)};
        },
        cases[i]);
  }
}

TEST(ExponentialRule, HasGradientsAndSecondOnesOverSeveralBlocks) {
  const Ragged layout({66, 3});
  expect_both(
      [&](const std::vector<Tensor>& x) {
        return std::vector<Tensor>{ops::exponential_rule(x[0], x[1], x[2], layout)};
      },
      {random_tensor({69, 1, 1}, 1), random_tensor({69, 1, 1}, 2), random_tensor({69, 1, 1}, 3)});
}

/// Compares with the product of each pair of query and key, computed separately.
TEST(ScaledProducts, EqualThoseOfEachPair) {
  constexpr int64_t kPositions = 16;
  for (const double slope : {0.0, 3.0, 40.0}) {
    const Tensor key_scale = (random_tensor({2, kPositions, 3}, 1, 5) +
                              slope * at::arange(kPositions, at::kDouble).view({1, kPositions, 1}));
    const Tensor peak = std::get<0>(at::cummax(key_scale, 1));
    const Tensor query_scale = random_tensor({2, kPositions, 3}, 2).abs().neg() - peak;
    const Tensor query = random_tensor({2, kPositions, 3}, 3), key = random_tensor({2, kPositions, 3}, 4);
    const Tensor found = ops::causal_products({query, query_scale}, {key, key_scale}, peak);
    for (int64_t t = 0; t < kPositions; ++t) {
      for (int64_t j = 0; j < kPositions; ++j) {
        const Tensor expected =
            (query.select(1, t) * key.select(1, j) * (query_scale.select(1, t) + key_scale.select(1, j)).exp()).sum(-1);
        if (j > t) {
          EXPECT_EQ(found.select(1, t).select(1, j).abs().max().item<double>(), 0);
        } else {
          EXPECT_LT(furthest(found.select(1, t).select(1, j), expected), 1e-13);
        }
      }
    }
  }
}

}  // namespace
}  // namespace plumb
