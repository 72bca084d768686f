// Positions that act within self-attention, compared with their formulas pair by pair.
#include "plumb/nn/position/position.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "plumb/base/error.h"
#include "plumb/model/config.h"
#include "plumb/nn/attention/multi_head.h"
#include "support/gradcheck.h"

namespace plumb::position_test {
namespace {

using testing::random_tensor;

constexpr int64_t kHeads = 3;
constexpr int64_t kSize = 4;
constexpr int64_t kWidth = kHeads * kSize;
constexpr ops::HeadShape kShape{kHeads, kHeads, kSize};

/// The options of a position encoding from the lines of its section.
VariantOptions parsed(const std::string& name, const std::string& lines) {
  if (lines.empty()) return {};
  ModelConfig config;
  Config::from_string("[model." + name + "]\n" + lines, "test").read("model", config);
  return config.options;
}

/// An attention with positions and random parameters.
struct Fixture {
  Parameters parameters{at::kDouble};
  std::unique_ptr<Positions> encoding;
  std::unique_ptr<MultiHeadAttention> attention;

  Fixture(const std::string& name, bool causal, const std::string& options = "") {
    encoding = make_positions(name, parameters, "position", {kWidth, kHeads, 64, causal, kSize, parsed(name, options)});
    attention = std::make_unique<MultiHeadAttention>(parameters, "a", kWidth, kShape, MultiHeadOptions(),
                                                     encoding->within(parameters, "a"));
    parameters.allocate();
    for (const Parameter& parameter : parameters.all()) {
      const at::NoGradGuard no_graph;
      parameter.value.detach().copy_(random_tensor(parameter.value.sizes(), 8, 0.5));
    }
  }
  [[nodiscard]] Tensor value(const std::string& name) const { return parameters.at(name).value.detach(); }
};

/// score(head, i, q_i, j, k_j), including the division by √size.
using Score = std::function<double(int64_t, int64_t, const Tensor&, int64_t, const Tensor&)>;

/// The entire attention of ragged sequences, with the scores of a formula.
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

void expect_formula(const std::string& name, const std::function<Score(const Fixture&, bool)>& make_score,
                    const std::string& options = "") {
  for (const bool causal : {true, false}) {
    const Fixture fixture(name, causal, options);
    const Ragged layout({7, 1, 30});
    const Tensor x = random_tensor({layout.tokens(), kWidth}, 1);
    const Tensor found = fixture.attention->self(x, layout, causal, {});
    const Tensor expected = attend(fixture, x, layout, causal, make_score(fixture, causal));
    EXPECT_LT((found - expected).abs().max().item<double>(), 1e-12) << name << (causal ? ", causal" : ", both ways");
  }
}

/// x with pair m rotated by p·frequencies[m]; pair m is (2m, 2m + 1), or (m, m + count).
Tensor rotated(const Tensor& x, int64_t position, const std::vector<double>& frequencies, bool interleaved) {
  Tensor out = x.clone();
  const auto count = static_cast<int64_t>(frequencies.size());
  for (int64_t m = 0; m < count; ++m) {
    const int64_t first = interleaved ? 2 * m : m;
    const int64_t second = interleaved ? 2 * m + 1 : m + count;
    const double angle = static_cast<double>(position) * frequencies[static_cast<size_t>(m)];
    const double a = x[first].item<double>();
    const double b = x[second].item<double>();
    out[first] = a * std::cos(angle) - b * std::sin(angle);
    out[second] = a * std::sin(angle) + b * std::cos(angle);
  }
  return out;
}

void expect_rotary(const std::string& options, const std::vector<double>& frequencies, bool interleaved) {
  SCOPED_TRACE(options);
  expect_formula(
      "rotary",
      [&](const Fixture&, bool) -> Score {
        return [&](int64_t, int64_t i, const Tensor& q, int64_t j, const Tensor& k) {
          return inner_product(rotated(q, i, frequencies, interleaved), rotated(k, j, frequencies, interleaved)) /
                 std::sqrt(static_cast<double>(kSize));
        };
      },
      options);
}

TEST(Positions, RotaryTurnsQueriesAndKeys) {
  expect_rotary("", {1, 0.01}, true);
  expect_rotary("interleaved = false", {1, 0.01}, false);
  expect_rotary("theta = 500000.0", {1, std::pow(500000.0, -0.5)}, true);
  expect_rotary("features = 2", {1}, true);
  expect_rotary("features = 2\ninterleaved = false", {1}, false);
}

TEST(Positions, RotaryFrequenciesAreScaled) {
  expect_rotary("scaling = \"linear\"\nfactor = 4.0", {0.25, 0.0025}, true);
  // theta·4^(4/2): 160,000, whose root is 400.
  expect_rotary("scaling = \"ntk\"\nfactor = 4.0", {1, 1.0 / 400}, true);
  // Wavelengths are 2π ≈ 6.3 and 628.3. For L = 100 and factors 1 and 4: 6.3 < 25 stays, 628.3 > 100 is divided by 8.
  expect_rotary("scaling = \"llama3\"\nfactor = 8.0\noriginal_length = 100", {1, 0.00125}, true);
  // For L = 1000 and factors 1 and 4, 628.3 lies between 250 and 1000: L/λ = 1.5915…, s = 0.19718….
  const double s = (1000 * 0.01 / (2 * std::numbers::pi) - 1) / 3;
  expect_rotary("scaling = \"llama3\"\nfactor = 8.0\noriginal_length = 1000", {1, (1 - s) * 0.00125 + s * 0.01}, true);
}

TEST(Positions, RotaryRefusesWhatMakesNoRotation) {
  for (const char* bad : {"features = 3", "features = 6", "features = -2", "theta = 0.0", "scaling = \"none at all\"",
                          "factor = -1.0", "high_frequency_factor = 0.5"}) {
    EXPECT_THROW(Fixture("rotary", true, bad), Error) << bad;
  }
}

/// Positions far beyond the first ones: growing tables keep their contents.
TEST(Positions, TablesGrow) {
  for (const char* name : {"sinusoidal", "rotary", "transformer-xl"}) {
    SCOPED_TRACE(name);
    const Fixture grown(name, true);
    const Fixture at_once(name, true);
    const Tensor x = random_tensor({700, kWidth}, 1);
    for (const int64_t length : {3, 257, 600})
      (void)grown.attention->self(x.narrow(0, 0, length), Ragged({length}), true, {});
    EXPECT_TRUE(at::equal(grown.attention->self(x, Ragged({700}), true, {}),
                          at_once.attention->self(x, Ragged({700}), true, {})));
    if (std::string(name) != "sinusoidal") continue;
    (void)grown.encoding->table(10);
    const Tensor table = grown.encoding->table(1000);
    for (const int64_t p : {9, 300, 999}) {
      for (const int64_t j : {0, 7}) {
        const int64_t even = j / 2 * 2;
        const double angle = static_cast<double>(p) / std::pow(10000.0, static_cast<double>(even) / kWidth);
        EXPECT_NEAR(table[p][j].item<double>(), j % 2 == 0 ? std::sin(angle) : std::cos(angle), 1e-12);
      }
    }
  }
}

TEST(Positions, SinesAndCosinesInHalves) {
  const Fixture fixture("sinusoidal-halves", true);
  const Tensor table = fixture.encoding->table(300);
  ASSERT_GE(table.size(0), 300);
  ASSERT_EQ(table.size(1), kWidth);
  for (const int64_t p : {0, 9, 299}) {
    for (int64_t i = 0; i < kWidth / 2; ++i) {
      const double angle = static_cast<double>(p) / std::pow(10000.0, 2.0 * static_cast<double>(i) / kWidth);
      EXPECT_NEAR(table[p][i].item<double>(), std::sin(angle), 1e-12);
      EXPECT_NEAR(table[p][kWidth / 2 + i].item<double>(), std::cos(angle), 1e-12);
    }
  }
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
  // Below 16 (8 in each direction) each distance has its own bucket; 16 … 18 share one, as do 19 … 20, 21 … 23, 24 … 26
  // and 27 … 30. In both directions: 8 … 11, 12 … 15, 16 … 22, 23 … 31.
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
    const auto encoding = make_positions(name, parameters, "position", {kWidth, kHeads, 64, true});
    MultiHeadOptions options;
    options.kind = "linear";
    EXPECT_THROW(MultiHeadAttention(parameters, "a", kWidth, kShape, options, encoding->within(parameters, "a")), Error)
        << name;
  }
}

}  // namespace
}  // namespace plumb::position_test
