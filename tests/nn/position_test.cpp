// Positions that act within self-attention, against their formulas written pair by pair.
#include "plumb/nn/position/position.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/error.h"
#include "plumb/nn/attention/multi_head.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

using testing::random_tensor;

constexpr int64_t kHeads = 3;
constexpr int64_t kSize = 4;
constexpr int64_t kWidth = kHeads * kSize;

/// An attention with positions and random parameters.
struct Fixture {
  Parameters parameters{at::kDouble};
  std::unique_ptr<Positions> encoding;
  std::unique_ptr<MultiHeadAttention> attention;

  Fixture(const std::string& name, bool causal) {
    encoding = positions().at(name).make(parameters, "position", {kWidth, kHeads, 64, causal});
    attention = std::make_unique<MultiHeadAttention>(parameters, "a", kWidth, kHeads, MultiHeadOptions(),
                                                     encoding->within(parameters, "a"));
    parameters.finish();
    for (const Parameter& parameter : parameters.all()) {
      const at::NoGradGuard no_graph;
      parameter.value.detach().copy_(random_tensor(parameter.value.sizes(), 8, 0.5));
    }
  }
  [[nodiscard]] Tensor value(const std::string& name) const { return parameters.at(name).value.detach(); }
};

/// score(head, i, q_i, j, k_j), √size included.
using Score = std::function<double(int64_t, int64_t, const Tensor&, int64_t, const Tensor&)>;

/// The whole attention of ragged sequences, with the scores of a formula.
Tensor attend(const Fixture& fixture, const Tensor& x, const Ragged& layout, bool causal, const Score& score) {
  const std::vector<Tensor> parts =
      at::addmm(fixture.value("a.in_proj_bias"), x, fixture.value("a.in_proj_weight").t()).chunk(3, 1);
  const Tensor mixed = at::zeros({x.size(0), kWidth}, at::kDouble);
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    const int64_t begin = layout.begin(s);
    for (int64_t h = 0; h < kHeads; ++h) {
      const auto of_head = [&](const Tensor& part, int64_t t) { return part[begin + t].narrow(0, h * kSize, kSize); };
      for (int64_t i = 0; i < layout.length(s); ++i) {
        double total = 0;
        Tensor sum = at::zeros({kSize}, at::kDouble);
        for (int64_t j = 0; j < (causal ? i + 1 : layout.length(s)); ++j) {
          const double weight = std::exp(score(h, i, of_head(parts[0], i), j, of_head(parts[1], j)));
          sum = sum + weight * of_head(parts[2], j);
          total += weight;
        }
        mixed[begin + i].narrow(0, h * kSize, kSize).copy_(sum / total);
      }
    }
  }
  return at::addmm(fixture.value("a.out_proj.bias"), mixed, fixture.value("a.out_proj.weight").t());
}

double inner_product(const Tensor& a, const Tensor& b) { return (a * b).sum().item<double>(); }

void expect_formula(const std::string& name, const std::function<Score(const Fixture&, bool)>& make_score) {
  for (const bool causal : {true, false}) {
    const Fixture fixture(name, causal);
    const Ragged layout({7, 1, 30});
    const Tensor x = random_tensor({layout.tokens(), kWidth}, 1);
    const Tensor found = fixture.attention->self(x, layout, causal, {});
    const Tensor expected = attend(fixture, x, layout, causal, make_score(fixture, causal));
    EXPECT_LT((found - expected).abs().max().item<double>(), 1e-12) << name << (causal ? ", causal" : ", both ways");
  }
}

TEST(Positions, RotaryTurnsQueriesAndKeys) {
  const auto turned = [](const Tensor& x, int64_t position) {
    Tensor out = at::empty_like(x);
    for (int64_t i = 0; i < kSize / 2; ++i) {
      const double angle = static_cast<double>(position) * std::pow(10000.0, -2.0 * static_cast<double>(i) / kSize);
      const double a = x[2 * i].item<double>();
      const double b = x[2 * i + 1].item<double>();
      out[2 * i] = a * std::cos(angle) - b * std::sin(angle);
      out[2 * i + 1] = a * std::sin(angle) + b * std::cos(angle);
    }
    return out;
  };
  expect_formula("rotary", [&](const Fixture&, bool) -> Score {
    return [&](int64_t, int64_t i, const Tensor& q, int64_t j, const Tensor& k) {
      return inner_product(turned(q, i), turned(k, j)) / std::sqrt(static_cast<double>(kSize));
    };
  });
}

TEST(Positions, AlibiPenalizesDistance) {
  // Three heads: the slopes of two, 2^−4 and 2^−8, and the first of four, 2^−2.
  const std::vector<double> slopes = {0.0625, 0.00390625, 0.25};
  expect_formula("alibi", [&](const Fixture&, bool) -> Score {
    return [&](int64_t h, int64_t i, const Tensor& q, int64_t j, const Tensor& k) {
      return inner_product(q, k) / std::sqrt(static_cast<double>(kSize)) -
             slopes[static_cast<size_t>(h)] * static_cast<double>(std::abs(i - j));
    };
  });
}

TEST(Positions, T5AddsABiasByBucket) {
  // Below 16 (8 on either side) each distance has its own bucket; 16 … 18 share one, as do 19 … 20, 21 … 23, 24 … 26
  // and 27 … 30. Looking both ways: 8 … 11, 12 … 15, 16 … 22, 23 … 31.
  const auto bucket = [](int64_t i, int64_t j, bool causal) -> int64_t {
    const int64_t distance = std::abs(i - j);
    if (causal) {
      if (distance < 16) return distance;
      const std::vector<int64_t> ends = {19, 21, 24, 27, 31};
      return 16 + (std::upper_bound(ends.begin(), ends.end(), distance) - ends.begin());
    }
    const int64_t side = j > i ? 16 : 0;
    if (distance < 8) return side + distance;
    const std::vector<int64_t> ends = {12, 16, 23, 32};
    return side + 8 + (std::upper_bound(ends.begin(), ends.end(), distance) - ends.begin());
  };
  expect_formula("t5", [&](const Fixture& fixture, bool causal) -> Score {
    const Tensor table = fixture.value("position.relative_bias");
    return [=](int64_t h, int64_t i, const Tensor& q, int64_t j, const Tensor& k) {
      return inner_product(q, k) / std::sqrt(static_cast<double>(kSize)) +
             table[bucket(i, j, causal)][h].item<double>();
    };
  });
}

TEST(Positions, TransformerXlScoresContentAndDistance) {
  expect_formula("transformer-xl", [&](const Fixture& fixture, bool) -> Score {
    const Tensor weight = fixture.value("a.r_proj.weight");
    const Tensor u = fixture.value("a.r_content.bias");
    const Tensor v = fixture.value("a.r_position.bias");
    return [=](int64_t h, int64_t i, const Tensor& q, int64_t j, const Tensor& k) {
      const Tensor r = at::empty({kWidth}, at::kDouble);
      for (int64_t c = 0; c < kWidth / 2; ++c) {
        const double angle = static_cast<double>(i - j) * std::pow(10000.0, -2.0 * static_cast<double>(c) / kWidth);
        r[c] = std::sin(angle);
        r[kWidth / 2 + c] = std::cos(angle);
      }
      const Tensor projected = at::mv(weight, r).narrow(0, h * kSize, kSize);
      return (inner_product(q + u[h], k) + inner_product(q + v[h], projected)) / std::sqrt(static_cast<double>(kSize));
    };
  });
}

TEST(Positions, AllHaveSecondGradientsWithinAttention) {
  for (const std::string& name : positions().names()) {
    SCOPED_TRACE(name);
    const Fixture fixture(name, true);
    const Ragged layout({3, 2});
    testing::expect_both(
        [&](const std::vector<Tensor>& in) {
          return std::vector<Tensor>{fixture.attention->self(in[0], layout, true, {})};
        },
        {random_tensor({5, kWidth}, 1)});
  }
}

TEST(Positions, ThoseThatAddToScoresNeedSoftmax) {
  for (const char* name : {"alibi", "t5", "transformer-xl"}) {
    Parameters parameters(at::kDouble);
    const auto encoding = positions().at(name).make(parameters, "position", {kWidth, kHeads, 64, true});
    MultiHeadOptions options;
    options.kind = "linear";
    EXPECT_THROW(MultiHeadAttention(parameters, "a", kWidth, kHeads, options, encoding->within(parameters, "a")), Error)
        << name;
  }
}

}  // namespace
}  // namespace plumb
