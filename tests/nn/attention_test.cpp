// Kinds of attention compared with their formulas, written as plain sums over pairs of positions.
#include "plumb/nn/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nn/small_heads.h"
#include "plumb/nn/attention/dpfp.h"
#include "plumb/nn/attention/favor.h"
#include "support/gradcheck.h"

namespace plumb::attention_test {
namespace {

using test::distance;
using test::kHeads;
using test::kSize;
using test::kWidth;
using testing::random_tensor;

struct Fixture {
  Parameters parameters{at::kDouble};
  std::unique_ptr<Attention> attention;
  Tensor beta;  // (heads, d), of `delta`

  explicit Fixture(const std::string& kind, const VariantOptions& options = {}) {
    attention = make_attention(kind, parameters, {"attention", kWidth, {kHeads, kHeads, kSize}, options, nullptr});
    parameters.allocate();
    for (const Parameter& parameter : parameters.all()) {
      const at::NoGradGuard no_graph;
      parameter.value.detach().copy_(random_tensor(parameter.value.sizes(), 8));
      beta = parameter.value.detach();
    }
  }
};

/// Values that are unit vectors show the weights: each is dropped, or divided by 1 − p.
TEST(SoftmaxAttention, DropsWeightsInTraining) {
  constexpr double kRate = 0.25;
  const Ragged layout(std::vector<int64_t>(60, kSize));
  Tensor packed = random_tensor({layout.tokens(), 3 * kWidth}, 1);
  packed.narrow(1, 2 * kWidth, kWidth)
      .copy_(at::eye(kSize, at::kDouble).repeat({layout.sequences(), kHeads}));  // the value of key j is unit vector j
  Parameters parameters(at::kDouble);
  const auto attention =
      make_attention("softmax", parameters, {"attention", kWidth, {kHeads, kHeads, kSize}, {}, nullptr, kRate});
  const ForwardContext training(0.0, 7, 3);
  const AttentionMemory memory{packed.narrow(1, kWidth, 2 * kWidth), layout};
  const auto run = [&](int64_t kind, const ForwardContext& context) {
    return kind == 2 ? attention->cross(packed.narrow(1, 0, kWidth), layout, memory, context)
                     : attention->self(packed, {}, layout, kind == 1, context);
  };
  for (const int64_t kind : {0, 1, 2}) {
    const Tensor whole = run(kind, ForwardContext(Pass::measurement));
    const Tensor found = run(kind, training);
    const Tensor kept = found != 0;
    EXPECT_LT((found - kept * whole / (1 - kRate)).abs().max().item<double>(), 1e-12);
    const auto count = static_cast<double>((whole != 0).sum().item<int64_t>());
    const auto share = static_cast<double>(kept.sum().item<int64_t>()) / count;
    EXPECT_NEAR(share, 1 - kRate, 5 * std::sqrt(kRate * (1 - kRate) / count));
    // Sequences have separate masks.
    if (kind != 1) {
      EXPECT_FALSE(at::equal(kept.narrow(0, 0, kSize), kept.narrow(0, kSize, kSize)));
    }
  }
}

/// φ of one vector.
using FeatureMap = std::function<std::vector<double>(const std::vector<double>&)>;

std::vector<double> row(const Tensor& x, int64_t token, int64_t column) {
  const auto a = x.accessor<double, 2>();
  std::vector<double> out;
  for (int64_t j = 0; j < kSize; ++j) out.push_back(a[token][column + j]);
  return out;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// y_i = Σ_j φ(q_i)·φ(k_j)·v_j, over j ≤ i or over the entire sequence, divided by the sum of its weights if
/// `normalized`.
Tensor weighted_sums(const Tensor& packed, const Ragged& layout, bool causal, bool normalized, const FeatureMap& phi) {
  Tensor out = at::zeros({packed.size(0), kWidth}, at::kDouble);
  auto y = out.accessor<double, 2>();
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    for (int64_t h = 0; h < kHeads; ++h) {
      for (int64_t i = layout.begin(s); i < layout.begin(s + 1); ++i) {
        const auto q = phi(row(packed, i, h * kSize));
        double total = 0;
        for (int64_t j = layout.begin(s); j < (causal ? i + 1 : layout.begin(s + 1)); ++j) {
          const double weight = dot(q, phi(row(packed, j, kWidth + h * kSize)));
          const auto v = row(packed, j, 2 * kWidth + h * kSize);
          for (int64_t c = 0; c < kSize; ++c) y[i][h * kSize + c] += weight * v[static_cast<size_t>(c)];
          total += weight;
        }
        for (int64_t c = 0; c < kSize && normalized; ++c) y[i][h * kSize + c] /= total;
      }
    }
  }
  return out;
}

std::vector<double> elu_plus_one(const std::vector<double>& x) {
  std::vector<double> out;
  for (const double value : x) out.push_back(value > 0 ? value + 1 : std::exp(value));
  return out;
}

/// Element i of block n: r_i·r_{i−n}, indices modulo the length.
std::vector<double> dpfp_by_elements(const std::vector<double>& x, int64_t nu) {
  std::vector<double> r;
  for (const double value : x) r.push_back(std::max(value, 0.0));
  for (const double value : x) r.push_back(std::max(-value, 0.0));
  const auto n = static_cast<int64_t>(r.size());
  std::vector<double> out;
  for (int64_t shift = 1; shift <= nu; ++shift) {
    for (int64_t i = 0; i < n; ++i)
      out.push_back(r[static_cast<size_t>(i)] * r[static_cast<size_t>((i - shift + n) % n)]);
  }
  return out;
}

void expect_weighted_sums(const std::string& kind, bool normalized, const FeatureMap& phi,
                          const VariantOptions& options = {}) {
  const Fixture fixture(kind, options);
  const Ragged layout({5, 1, 70, 9});
  const Tensor packed = random_tensor({layout.tokens(), 3 * kWidth}, 1);
  const Tensor x = random_tensor({layout.tokens(), kWidth}, 2);
  for (const bool causal : {true, false}) {
    EXPECT_LT(distance(fixture.attention->self(packed, x, layout, causal, {}),
                       weighted_sums(packed, layout, causal, normalized, phi)),
              1e-11)
        << kind << (causal ? ", causal" : ", both ways");
  }
}

TEST(Attention, Linear) { expect_weighted_sums("linear", true, elu_plus_one); }

TEST(Attention, FastWeightProgrammerOf1991) {
  expect_weighted_sums("fwp-1991", false, [](const std::vector<double>& x) { return x; });
}

TEST(Attention, DpfpWithTheSumRule) {
  // The formula needs a nonzero sum of weights to divide by. With ν = 7, all rotations, and positive inputs, every
  // query shares features with its own key.
  const Fixture fixture("dpfp", {{"dpfp", Options(DpfpOptions{7})}});
  const Ragged layout({40});
  const Tensor packed = random_tensor({40, 3 * kWidth}, 1).abs();
  const auto phi = [](const std::vector<double>& x) { return dpfp_by_elements(x, 7); };
  for (const bool causal : {true, false}) {
    EXPECT_LT(distance(fixture.attention->self(packed, packed, layout, causal, {}),
                       weighted_sums(packed, layout, causal, true, phi)),
              1e-11);
  }
}

/// The programmer of 1991 is linear attention with identity features and without normalization: for positive queries
/// and keys, `linear` reads them off elu(x − 1) + 1 = x, and divides by Σ k·q.
TEST(Attention, TheProgrammerOf1991IsLinearAttention) {
  const Ragged layout({7, 1, 12});
  const Tensor positive = random_tensor({20, 3 * kWidth}, 4).abs() + 1.5;
  const Tensor shifted = at::cat({positive.narrow(1, 0, 2 * kWidth) - 1, positive.narrow(1, 2 * kWidth, kWidth)}, 1);
  const Fixture programmer("fwp-1991"), linear("linear");
  for (const bool causal : {true, false}) {
    const Tensor sums = programmer.attention->self(positive, positive, layout, causal, {});
    Tensor ones = positive.clone();
    ones.narrow(1, 2 * kWidth, kWidth).fill_(1);  // the same sums with values of 1: Σ k·q
    const Tensor divisors = programmer.attention->self(ones, ones, layout, causal, {});
    EXPECT_LT(distance(linear.attention->self(shifted, shifted, layout, causal, {}), sums / divisors), 1e-12);
  }
}

TEST(Attention, DpfpFeatures) {
  const Tensor x = random_tensor({1, kSize}, 3);
  for (const int64_t nu : {1, 3}) {
    const Tensor features = dpfp(x, nu);
    const std::vector<double> expected = dpfp_by_elements(row(x, 0, 0), nu);
    ASSERT_EQ(features.numel(), static_cast<int64_t>(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(features[0][static_cast<int64_t>(i)].item<double>(), expected[i]);
  }
}

TEST(Attention, DeltaRule) {
  const Fixture fixture("delta", {{"dpfp", Options(DpfpOptions{2})}});
  const Ragged layout({5, 80});
  const Tensor packed = random_tensor({85, 3 * kWidth}, 1);
  const Tensor x = random_tensor({85, kWidth}, 2);
  const auto phi = [&](const std::vector<double>& raw) {
    std::vector<double> features = dpfp_by_elements(raw, 2);
    double sum = 0;
    for (const double value : features) sum += value;
    for (double& value : features) value = sum == 0 ? 0 : value / sum;
    return features;
  };
  const Tensor causal = at::zeros({85, kWidth}, at::kDouble);
  const Tensor both = at::zeros({85, kWidth}, at::kDouble);
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    for (int64_t h = 0; h < kHeads; ++h) {
      const size_t features = size_t{4} * kSize;
      std::vector<std::vector<double>> matrix(kSize, std::vector<double>(features, 0.0));  // [value column]
      for (int64_t t = layout.begin(s); t < layout.begin(s + 1); ++t) {
        const auto key = phi(row(packed, t, kWidth + h * kSize));
        const auto value = row(packed, t, 2 * kWidth + h * kSize);
        double product = 0;
        for (int64_t j = 0; j < kWidth; ++j) product += fixture.beta[h][j].item<double>() * x[t][j].item<double>();
        const double strength = 1 / (1 + std::exp(-product));
        for (size_t c = 0; c < kSize; ++c) {
          const double error = value[c] - dot(matrix[c], key);
          for (size_t f = 0; f < features; ++f) matrix[c][f] += strength * error * key[f];
        }
        const auto query = phi(row(packed, t, h * kSize));
        for (size_t c = 0; c < kSize; ++c) causal[t][h * kSize + static_cast<int64_t>(c)] = dot(matrix[c], query);
      }
      for (int64_t t = layout.begin(s); t < layout.begin(s + 1); ++t) {
        const auto query = phi(row(packed, t, h * kSize));
        for (size_t c = 0; c < kSize; ++c) both[t][h * kSize + static_cast<int64_t>(c)] = dot(matrix[c], query);
      }
    }
  }
  EXPECT_LT(distance(fixture.attention->self(packed, x, layout, true, {}), causal), 1e-10);
  EXPECT_LT(distance(fixture.attention->self(packed, x, layout, false, {}), both), 1e-10);
}

/// The recurrence of the gated delta rule, position by position: S decays, is corrected, and is read.
void expect_gated_delta(const std::string& kind) {
  Fixture fixture(kind);
  const auto named = [&](const std::string& name) { return fixture.parameters.at("attention." + name).value.detach(); };
  const Ragged layout({5, 80});
  const Tensor packed = random_tensor({85, 3 * kWidth}, 1);
  const Tensor x = random_tensor({85, kWidth}, 2);
  const auto phi = [](const std::vector<double>& raw) {
    std::vector<double> out;
    for (const double value : raw) out.push_back(value / (1 + std::exp(-value)));
    const double length = std::sqrt(dot(out, out) + 1e-6);
    for (double& value : out) value /= length;
    return out;
  };
  const auto times = [&](const Tensor& matrix, int64_t i, const Tensor& vector) {
    double sum = 0;
    for (int64_t j = 0; j < vector.numel(); ++j) sum += matrix[i][j].item<double>() * vector[j].item<double>();
    return sum;
  };
  const Tensor causal = at::zeros({85, kWidth}, at::kDouble);
  const Tensor both = at::zeros({85, kWidth}, at::kDouble);
  for (int64_t s = 0; s < layout.sequences(); ++s) {
    for (int64_t h = 0; h < kHeads; ++h) {
      std::vector<std::vector<double>> matrix(kSize, std::vector<double>(kSize, 0.0));  // [value column]
      const auto read = [&](int64_t t, const Tensor& out) {
        const auto query = phi(row(packed, t, h * kSize));
        for (size_t c = 0; c < kSize; ++c) out[t][h * kSize + static_cast<int64_t>(c)] = dot(matrix[c], query);
      };
      for (int64_t t = layout.begin(s); t < layout.begin(s + 1); ++t) {
        const auto key = phi(row(packed, t, kWidth + h * kSize));
        const auto value = row(packed, t, 2 * kWidth + h * kSize);
        const double strength = 1 / (1 + std::exp(-times(named("beta.weight"), h, x[t])));
        for (int64_t f = 0; f < kSize; ++f) {
          double gate = 0;
          if (kind == "kda") {
            Tensor low = at::zeros({kSize}, at::kDouble);
            for (int64_t i = 0; i < kSize; ++i) low[i] = times(named("decay_down.weight"), i, x[t]);
            gate = times(named("decay.weight"), h * kSize + f, low) + named("decay.bias")[h * kSize + f].item<double>();
          } else {
            gate = times(named("decay.weight"), h, x[t]) + named("decay.bias")[h].item<double>();
          }
          const double g = -std::exp(named("decay.log_rate")[h].item<double>()) * std::log1p(std::exp(gate));
          for (size_t c = 0; c < kSize; ++c) matrix[c][static_cast<size_t>(f)] *= std::exp(g);
        }
        for (size_t c = 0; c < kSize; ++c) {
          const double error = value[c] - dot(matrix[c], key);
          for (size_t f = 0; f < kSize; ++f) matrix[c][f] += strength * error * key[f];
        }
        read(t, causal);
      }
      for (int64_t t = layout.begin(s); t < layout.begin(s + 1); ++t) read(t, both);
    }
  }
  EXPECT_LT(distance(fixture.attention->self(packed, x, layout, true, {}), causal), 1e-10);
  EXPECT_LT(distance(fixture.attention->self(packed, x, layout, false, {}), both), 1e-10);
}

TEST(Attention, GatedDeltaRule) { expect_gated_delta("gated-delta"); }
TEST(Attention, KimiDeltaAttention) { expect_gated_delta("kda"); }

/// The features of FAVOR+: exp(w·x − ‖x‖²/2)/√m of scaled x.
TEST(Attention, FavorWithItsOwnDirections) {
  const VariantOptions options = {{"favor", Options(FavorOptions{11, 1000})}};
  const Tensor directions = orthogonal_directions(11, kSize, "attention", 0);
  expect_weighted_sums(
      "favor", true,
      [&](const std::vector<double>& raw) {
        std::vector<double> x;
        for (const double value : raw) x.push_back(value / std::pow(static_cast<double>(kSize), 0.25));
        std::vector<double> features;
        for (int64_t i = 0; i < 11; ++i)
          features.push_back(std::exp(dot(row(directions, i, 0), x) - dot(x, x) / 2) / std::sqrt(11.0));
        return features;
      },
      options);
}

TEST(Attention, FavorDirectionsAreOrthogonalWithinABlock) {
  const Tensor w = orthogonal_directions(10, 4, "name", 3);
  const Tensor product = at::matmul(w, w.t());
  for (int64_t i = 0; i < 10; ++i) {
    for (int64_t j = 0; j < 10; ++j) {
      if (i != j && i / 4 == j / 4) {
        EXPECT_LT(std::abs(product[i][j].item<double>()), 1e-12) << i << ' ' << j;
      }
    }
  }
  EXPECT_TRUE(at::equal(w, orthogonal_directions(10, 4, "name", 3)));
  EXPECT_FALSE(at::equal(w, orthogonal_directions(10, 4, "name", 4)));
  EXPECT_FALSE(at::equal(w, orthogonal_directions(10, 4, "other", 3)));
}

/// The mean over draws of φ(x)·φ(y) is exp(x·y), within three standard errors.
TEST(Attention, FavorEstimatesTheSoftmaxKernelWithoutBias) {
  constexpr int64_t kDraws = 4000;
  for (const double scale : {0.3, 0.6}) {
    const Tensor x = random_tensor({1, 6}, 1, scale);
    const Tensor y = random_tensor({1, 6}, 2, scale);
    const double exact = std::exp((x * y).sum().item<double>());
    double sum = 0;
    double squares = 0;
    for (int64_t draw = 0; draw < kDraws; ++draw) {
      const Tensor w = orthogonal_directions(12, 6, "test", draw);
      const double estimate = (log_positive_features(x, w) + log_positive_features(y, w)).exp().mean().item<double>();
      sum += estimate;
      squares += estimate * estimate;
    }
    const double mean = sum / kDraws;
    const double error = std::sqrt((squares / kDraws - mean * mean) / kDraws);
    EXPECT_LT(std::abs(mean - exact), 3 * error) << "scale " << scale << ": " << mean << " for " << exact;
    EXPECT_LT(error, 0.05 * exact);
  }
}

TEST(Attention, FavorRedrawsOnItsScheduleInTrainingAlone) {
  const Fixture fixture("favor", {{"favor", Options(FavorOptions{0, 10})}});
  const Ragged layout({5});
  const Tensor packed = random_tensor({5, 3 * kWidth}, 1);
  const auto at_step = [&](int64_t step) {
    return fixture.attention->self(packed, packed, layout, true, ForwardContext(0.0, 1, step));
  };
  const Tensor evaluation = fixture.attention->self(packed, packed, layout, true, {});
  EXPECT_TRUE(at::equal(at_step(9), evaluation));
  EXPECT_FALSE(at::equal(at_step(10), evaluation));
  EXPECT_TRUE(at::equal(at_step(10), at_step(19)));
  EXPECT_FALSE(at::equal(at_step(19), at_step(20)));
  EXPECT_TRUE(at::equal(fixture.attention->self(packed, packed, layout, true, {}), evaluation));
}

TEST(Attention, FavorStaysFiniteForLargeInputs) {
  const Fixture fixture("favor");
  const Ragged layout({6});
  const Tensor packed = random_tensor({6, 3 * kWidth}, 1, 5.0).to(at::kFloat);
  EXPECT_TRUE(at::isfinite(fixture.attention->self(packed, packed, layout, true, {})).all().item<bool>());
}

TEST(Attention, EveryKindHasGradientsAndSecondOnes) {
  for (const std::string& kind : attentions().names()) {
    SCOPED_TRACE(kind);
    const Fixture fixture(kind, {{"favor", Options(FavorOptions{5, 0})}, {"dpfp", Options(DpfpOptions{1})}});
    const Ragged layout({3, 2});
    // Without common features, DPFP would divide 0 by 0; inputs well above 0 prevent that.
    const Tensor packed = random_tensor({5, 3 * kWidth}, 1, 0.5) + (kind == "dpfp" ? 2.0 : 0.0);
    const Tensor x = random_tensor({5, kWidth}, 2);  // only delta rules read it
    const bool reads_x = kind == "delta" || kind == "gated-delta" || kind == "kda";
    const std::vector<Tensor> inputs = reads_x ? std::vector<Tensor>{packed, x} : std::vector<Tensor>{packed};
    for (const bool causal : {true, false}) {
      testing::expect_both(
          [&](const std::vector<Tensor>& in) {
            return std::vector<Tensor>{fixture.attention->self(in[0], in.back(), layout, causal, {})};
          },
          inputs);
    }
  }
}

/// Cross-attention equals bidirectional self-attention if queries and keys come from the same tokens.
TEST(Attention, CrossEqualsSelfBothWays) {
  for (const std::string& kind : attentions().names()) {
    const Fixture fixture(kind);
    const Ragged layout({3, 5});
    const Tensor packed = random_tensor({8, 3 * kWidth}, 1).abs();
    const Tensor x = random_tensor({8, kWidth}, 2);
    const AttentionMemory memory =
        fixture.attention->remember(packed.narrow(1, kWidth, 2 * kWidth).contiguous(), x, layout, {});
    EXPECT_LT(distance(fixture.attention->cross(packed.narrow(1, 0, kWidth), layout, memory, {}),
                       fixture.attention->self(packed, x, layout, false, {})),
              1e-12)
        << kind;
  }
}

}  // namespace
}  // namespace plumb::attention_test
