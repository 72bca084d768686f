// Fast weights in blocks compared with the recurrence over positions, and their derivatives.
#include "plumb/ops/linear_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/gradcheck.h"

namespace plumb {
namespace {

using testing::expect_both;
using testing::random_tensor;
using Tensors = std::vector<Tensor>;

/// The recurrence of either rule in plain loops: the sum rule if beta is undefined, else the delta rule; with
/// log_decay, S decays before each position. Returns what every position reads from the matrix after its own update
/// or, if `last`, from the final matrix.
Tensor by_steps(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& beta, const Ragged& layout,
                bool last, const Tensor& log_decay = {}) {
  const int64_t heads = key.size(1);
  const int64_t features = key.size(2);
  const int64_t size = value.size(2);
  Tensor out = at::zeros({query.size(0), heads, size}, at::kDouble);
  const auto q = query.accessor<double, 3>();
  const auto k = key.accessor<double, 3>();
  const auto v = value.accessor<double, 3>();
  auto y = out.accessor<double, 3>();
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    for (int64_t h = 0; h < heads; ++h) {
      std::vector<double> matrix(static_cast<size_t>(features * size), 0.0);
      const auto at = [&](int64_t f, int64_t j) -> double& { return matrix[static_cast<size_t>(f * size + j)]; };
      const auto read = [&](const at::TensorAccessor<double, 3>& by, int64_t t, int64_t j) {
        double sum = 0;
        for (int64_t f = 0; f < features; ++f) sum += at(f, j) * by[t][h][f];
        return sum;
      };
      for (int64_t t = layout.begin(s); t < layout.begin(s + 1); ++t) {
        for (int64_t f = 0; f < features && log_decay.defined(); ++f) {
          const double g = log_decay[t][h][log_decay.size(2) == 1 ? 0 : f].item<double>();
          for (int64_t j = 0; j < size; ++j) at(f, j) *= std::exp(g);
        }
        std::vector<double> added;
        for (int64_t j = 0; j < size; ++j) {
          added.push_back(beta.defined() ? beta[t][h].item<double>() * (v[t][h][j] - read(k, t, j)) : v[t][h][j]);
        }
        for (int64_t f = 0; f < features; ++f) {
          for (int64_t j = 0; j < size; ++j) at(f, j) += k[t][h][f] * added[static_cast<size_t>(j)];
        }
        for (int64_t j = 0; j < size && !last; ++j) y[t][h][j] = read(q, t, j);
      }
      for (int64_t t = layout.begin(s); t < layout.begin(s + 1) && last; ++t) {
        for (int64_t j = 0; j < size; ++j) y[t][h][j] = read(q, t, j);
      }
    }
  }
  return out;
}

struct Inputs {
  Tensor query, key, value, beta;
  Inputs(const Ragged& layout, int64_t heads, int64_t features, int64_t size)
      : query(random_tensor({layout.tokens(), heads, features}, 1)),
        key(random_tensor({layout.tokens(), heads, features}, 2).abs()),
        value(random_tensor({layout.tokens(), heads, size}, 3)),
        beta(at::sigmoid(random_tensor({layout.tokens(), heads}, 4))) {
    key = key / key.sum(-1, true);
  }
};

double distance(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

/// Shorter than a block, exactly one block, several blocks, equal and different numbers of blocks. 130 features, below,
/// use the larger block size.
const std::vector<std::vector<int64_t>> kLayouts = {{5, 1, 3}, {64}, {70, 3, 200, 64, 129}, {128, 128}, {90, 100, 127}};

TEST(LinearAttention, SumRuleEqualsTheRecurrence) {
  for (const auto& lengths : kLayouts) {
    for (const int64_t features : {3, 130}) {
      const Ragged layout(lengths);
      const Inputs in(layout, 2, features, 4);
      EXPECT_LT(distance(ops::sum_rule(in.query, in.key, in.value, layout),
                         by_steps(in.query, in.key, in.value, {}, layout, false)),
                1e-10);
      const Tensor weights = ops::sum_rule_weights(in.key, in.value, layout);
      EXPECT_EQ(weights.sizes(), at::IntArrayRef({layout.sequences(), 2, features, 4}));
      EXPECT_LT(distance(ops::read_weights(in.query, weights, layout),
                         by_steps(in.query, in.key, in.value, {}, layout, true)),
                1e-10);
    }
  }
}

TEST(LinearAttention, DeltaRuleEqualsTheRecurrence) {
  for (const auto& lengths : kLayouts) {
    for (const int64_t features : {3, 130}) {
      const Ragged layout(lengths);
      const Inputs in(layout, 2, features, 4);
      const ops::DeltaRule both = ops::delta_rule(in.query, in.key, in.value, in.beta, layout);
      EXPECT_LT(distance(both.out, by_steps(in.query, in.key, in.value, in.beta, layout, false)), 1e-10);
      const Tensor weights = ops::delta_rule_weights(in.key, in.value, in.beta, layout);
      EXPECT_TRUE(both.weights.equal(weights));
      EXPECT_LT(distance(ops::read_weights(in.query, weights, layout),
                         by_steps(in.query, in.key, in.value, in.beta, layout, true)),
                1e-10);
    }
  }
}

/// Mild and sudden decays: over a block of 64 positions, S shrinks to about e^(−5) or e^(−500).
TEST(LinearAttention, DeltaRuleWithDecayEqualsTheRecurrence) {
  for (const auto& lengths : kLayouts) {
    for (const double strength : {0.1, 10.0}) {
      for (const int64_t each : {1, 5}) {
        const Ragged layout(lengths);
        const Inputs in(layout, 2, 5, 4);
        const Tensor decay = -strength * random_tensor({layout.tokens(), 2, each}, 6).abs();
        const ops::DeltaRule both = ops::delta_rule(in.query, in.key, in.value, in.beta, layout, decay);
        EXPECT_LT(distance(both.out, by_steps(in.query, in.key, in.value, in.beta, layout, false, decay)), 1e-10);
        const Tensor weights = ops::delta_rule_weights(in.key, in.value, in.beta, layout, decay);
        EXPECT_TRUE(both.weights.equal(weights));
        EXPECT_LT(distance(ops::read_weights(in.query, weights, layout),
                           by_steps(in.query, in.key, in.value, in.beta, layout, true, decay)),
                  1e-10);
      }
    }
  }
}

TEST(LinearAttention, ReadersMayBeOfOtherNumbersThanWriters) {
  const Ragged writers({3, 70, 2});
  const Ragged readers({0, 80, 4});  // a sequence that has ended has no readers
  const Inputs in(writers, 2, 3, 4);
  const Tensor weights = ops::sum_rule_weights(in.key, in.value, writers);
  const Tensor query = random_tensor({84, 2, 3}, 9);
  const Tensor read = ops::read_weights(query, weights, readers);
  for (const int64_t t : {0, 79, 80, 83}) {
    const Tensor expected = at::matmul(query[t].unsqueeze(1), weights[t < 80 ? 1 : 2]).squeeze(1);
    EXPECT_LT(distance(read[t], expected), 1e-12) << t;
  }
}

TEST(LinearAttention, OfNoPositionsIsEmpty) {
  for (const Ragged& layout : {Ragged(), Ragged({0, 0})}) {
    const Inputs in(layout, 2, 3, 4);
    EXPECT_EQ(ops::sum_rule(in.query, in.key, in.value, layout).sizes(), at::IntArrayRef({0, 2, 4}));
  }
}

TEST(LinearAttention, HasGradientsAndSecondOnes) {
  const Ragged layout({3, 9, 10});  // blocks of 16
  const Inputs in(layout, 2, 2, 2);
  expect_both([&](const Tensors& x) { return Tensors{ops::sum_rule(x[0], x[1], x[2], layout)}; },
              {in.query, in.key, in.value});
  expect_both(
      [&](const Tensors& x) {
        return Tensors{ops::read_weights(x[0], ops::sum_rule_weights(x[1], x[2], layout), layout)};
      },
      {in.query, in.key, in.value});
  expect_both([&](const Tensors& x) { return Tensors{ops::delta_rule(x[0], x[1], x[2], x[3], layout).out}; },
              {in.query, in.key, in.value, in.beta});
  for (const double strength : {0.2, 30.0}) {
    for (const int64_t each : {1, 2}) {
      const Tensor decay = -strength * random_tensor({layout.tokens(), 2, each}, 6).abs();
      expect_both(
          [&](const Tensors& x) {
            return Tensors{ops::delta_rule(x[0], x[1], x[2], x[3], layout, x[4]).out,
                           ops::delta_rule_weights(x[1], x[2], x[3], layout, x[4])};
          },
          {in.query, in.key, in.value, in.beta, decay});
    }
  }
}

TEST(LinearAttention, HasGradientsAndSecondOnesOverSeveralBlocks) {
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{70, 3}, std::vector<int64_t>{66}}) {
    const Ragged layout(lengths);
    const Inputs in(layout, 1, 1, 1);
    expect_both([&](const Tensors& x) { return Tensors{ops::sum_rule(x[0], x[1], x[2], layout)}; },
                {in.query, in.key, in.value});
    expect_both([&](const Tensors& x) { return Tensors{ops::delta_rule(x[0], x[1], x[2], x[3], layout).out}; },
                {in.query, in.key * 0.5, in.value, in.beta});
  }
}

}  // namespace
}  // namespace plumb
