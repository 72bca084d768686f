// Compares Muon and its Newton–Schulz iteration with formulas in singular values and plain products.
#include <gtest/gtest.h>

#include <cmath>

#include "options.h"
#include "plumb/optim/newton_schulz.h"
#include "support/bfloat16.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;

/// U·p(S/‖x‖)·Vᵀ for x = U·S·Vᵀ, where p is the quintic applied `steps` times.
Tensor by_singular_values(const Tensor& x, int64_t steps) {
  const auto [u, s, vh] = at::linalg_svd(x, /*full_matrices=*/false);
  Tensor p = s / (x.norm() + 1e-7);
  for (int64_t i = 0; i < steps; ++i) p = kA * p + kB * p.pow(3) + kC * p.pow(5);
  return at::matmul(u * p, vh);
}

double difference(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

TEST(NewtonSchulz, IsTheQuinticOfTheSingularValues) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{5, 9}, {9, 5}, {1, 6}, {6, 1}, {24, 64}}) {
    for (const int64_t steps : {1, 2, 5}) {
      const Tensor x = testing::random_tensor({rows, columns}, 3, 10);
      EXPECT_LT(difference(newton_schulz(x, steps), by_singular_values(x, steps)), 1e-12) << rows << ' ' << columns;
    }
  }
}

TEST(NewtonSchulz, IsItsProducts) {
  const Tensor given = testing::random_tensor({7, 12}, 4);
  Tensor x = given / given.norm();
  for (int i = 0; i < 5; ++i) {
    const Tensor a = at::matmul(x, x.t());
    x = kA * x + at::matmul(kB * a + kC * at::matmul(a, a), x);
  }
  EXPECT_LT(difference(newton_schulz(given, 5), x), 1e-6);  // except for the 1e-7 added to the norm
  const Tensor single = newton_schulz(given.to(at::kFloat), 5);
  EXPECT_EQ(single.scalar_type(), at::kFloat);
  EXPECT_LT(difference(single.to(at::kDouble), x), 1e-4);
  EXPECT_LT(difference(newton_schulz(given.t(), 5), x.t()), 1e-6);
}

TEST(NewtonSchulz, MakesAMatrixNearlyOrthogonal) {
  // 0.68 and 1.21 are the extremes over [0.0015, 1] of the quintic applied five times.
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{24, 64}, {64, 24}, {128, 512}}) {
    const Tensor x = newton_schulz(testing::random_tensor({rows, columns}, 5, 1e-3).to(at::kFloat), 5);
    const Tensor values = at::linalg_svdvals(x.to(at::kDouble));
    EXPECT_GT(values.min().item<double>(), 0.68);
    EXPECT_LT(values.max().item<double>(), 1.21);
  }
  EXPECT_EQ(newton_schulz(at::zeros({3, 4}), 5).abs().max().item<double>(), 0);
}

TEST(NewtonSchulz, KeepsSmallSingularValuesInFloat32) {
  // Singular values from 1 down to 1e-4 of the norm; of a long matrix, whose steps are taken several at once.
  const auto [u, s, vh] = at::linalg_svd(testing::random_tensor({64, 256}, 6), /*full_matrices=*/false);
  const Tensor x = at::matmul(u * at::logspace(0, -4, 64, 10, at::kDouble), vh);
  for (const int64_t steps : {5, 8}) {
    EXPECT_LT(difference(newton_schulz(x, steps), by_singular_values(x, steps)), 1e-10);
    EXPECT_LT(difference(newton_schulz(x.to(at::kFloat), steps).to(at::kDouble), by_singular_values(x, steps)), 1e-4);
  }
}

TEST(NewtonSchulz, RoundsIfWanted) {
  if (!test::has_bfloat16_products()) GTEST_SKIP() << "this processor has no bfloat16 products";
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{24, 64}, {64, 24}, {48, 48}}) {
    const Tensor x = testing::random_tensor({rows, columns}, 5).to(at::kFloat);
    const Tensor exact = newton_schulz(x, 5), rounded = newton_schulz(x, 5, /*bfloat16=*/true);
    EXPECT_EQ(rounded.scalar_type(), at::kFloat);
    EXPECT_GT(difference(exact, rounded), 1e-4);
    EXPECT_LT(difference(exact, rounded), 0.05);
    const Tensor wide = x.to(at::kDouble);
    EXPECT_EQ(difference(newton_schulz(wide, 5), newton_schulz(wide, 5, /*bfloat16=*/true)), 0);
  }
}

const std::vector<int64_t> kParts = {8, 4, 2};  // query, key and value

/// One parameter of every kind that Muon treats differently.
Parameters make_parameters(at::ScalarType type) {
  Parameters parameters(type);
  parameters.add("embed.weight", {11, 6}, Role::embedding);
  parameters.add_stacked("in_proj_weight", {14, 6}, kParts, Role::stacked_qkv);
  parameters.add("in_proj_bias", {14}, Role::bias);
  parameters.add("linear1.weight", {10, 6}, Role::feed_forward_input);
  parameters.add("linear2.weight", {6, 10}, Role::feed_forward_output);
  parameters.add("norm.weight", {6}, Role::gain);
  parameters.add("position.weight", {4, 6}, Role::position);
  parameters.add("output.weight", {3, 6}, Role::readout);
  parameters.allocate();
  parameters.flat().copy_(testing::random_tensor({parameters.count()}, 7));
  return parameters;
}

class Muon : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  struct Expected {
    bool nesterov = true;
    bool moonlight = false;
    double rate_factor = 1;  // for Adam's parameters
    double beta2 = 0.95;     // Adam's
  };

  static void expect_formula(const std::string& toml, const Expected& expected) {
    const at::NoGradGuard no_graph;
    const bool exact = GetParam() == at::kDouble;
    const Parameters parameters = make_parameters(GetParam());
    const auto muon = make_optimizer("muon", parameters, test::options(toml));
    std::vector<Tensor> w, m, v;
    for (const Tensor& value : parameters.values()) {
      w.push_back(value.detach().to(at::kDouble).clone());
      m.push_back(at::zeros_like(w.back()));
      v.push_back(at::zeros_like(w.back()));
    }
    for (int t = 1; t <= 3; ++t) {
      std::vector<Tensor> gradients;
      std::vector<ParameterStep> settings;
      for (size_t i = 0; i < w.size(); ++i) {
        const uint64_t seed = 100 * static_cast<uint64_t>(t) + i;
        gradients.push_back(testing::random_tensor(w[i].sizes(), seed).to(GetParam()));
        settings.push_back({.learning_rate = 0.02 / static_cast<double>(i + 1), .weight_decay = i < 2 ? 0.1 : 0.0});
      }
      muon->step(gradients, settings, 0.5);
      for (size_t i = 0; i < w.size(); ++i) {
        const Tensor g = 0.5 * gradients[i].to(at::kDouble);
        const double rate = settings[i].learning_rate, decay = settings[i].weight_decay;
        const std::string& name = parameters.all()[i].name;
        if (name == "in_proj_weight" || name.starts_with("linear")) {
          m[i] = 0.95 * m[i] + 0.05 * g;
          const Tensor u = expected.nesterov ? 0.95 * m[i] + 0.05 * g : m[i];
          std::vector<Tensor> directions;
          const auto parts = name == "in_proj_weight" ? kParts : std::vector<int64_t>{u.size(0)};
          for (const Tensor& part : u.split_with_sizes(parts, 0)) {
            const auto rows = static_cast<double>(part.size(0)), columns = static_cast<double>(part.size(1));
            const double scale = expected.moonlight ? 0.2 * std::sqrt(std::max(rows, columns))
                                                    : std::sqrt(std::max(1.0, rows / columns));
            directions.push_back(scale * by_singular_values(part, 5));
          }
          w[i] = w[i] - rate * (at::cat(directions, 0) + decay * w[i]);
        } else {
          m[i] = 0.9 * m[i] + 0.1 * g;
          v[i] = expected.beta2 * v[i] + (1 - expected.beta2) * g * g;
          const Tensor mean = m[i] / (1 - std::pow(0.9, t)), square = v[i] / (1 - std::pow(expected.beta2, t));
          w[i] = w[i] - expected.rate_factor * rate * (mean / (square.sqrt() + 1e-10) + decay * w[i]);
        }
        EXPECT_LT(difference(parameters.all()[i].value.to(at::kDouble), w[i]), exact ? 1e-12 : 1e-5) << name << t;
      }
    }
  }
};

TEST_P(Muon, FollowsItsFormula) { expect_formula("", {}); }

TEST_P(Muon, FollowsItsFormulaWithOptions) {
  expect_formula(
      "[train.muon]\nnesterov = false\nscale = \"moonlight\"\nadam_rate_factor = 0.3\n[train.muon.adam]\nbeta2 = 0.9",
      {.nesterov = false, .moonlight = true, .rate_factor = 0.3, .beta2 = 0.9});
}

INSTANTIATE_TEST_SUITE_P(Types, Muon, ::testing::Values(at::kFloat, at::kDouble),
                         [](const auto& info) { return std::string(at::toString(info.param)); });

TEST(MuonPrecision, IsAnOption) {
  if (!test::has_bfloat16_products()) GTEST_SKIP() << "this processor has no bfloat16 products";
  const auto after_a_step = [](const std::string& toml) {
    const Parameters parameters = make_parameters(at::kFloat);
    std::vector<Tensor> gradients;
    for (const Tensor& value : parameters.values()) gradients.push_back(at::ones_like(value) + value.detach());
    make_optimizer("muon", parameters, test::options(toml))->step(gradients, 0.1);
    return parameters.at("linear1.weight").value.detach().clone();
  };
  const Tensor exact = after_a_step("");
  const double moved = difference(exact, after_a_step("[train.muon]\nbfloat16 = true\n"));
  EXPECT_GT(moved, 0);
  EXPECT_LT(moved, 0.01);
  EXPECT_EQ(difference(exact, after_a_step("[train.muon]\nbfloat16 = false\n")), 0);
}

TEST(MuonState, HasMomentumForMatricesAndAdamsForTheRest) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : make_optimizer("muon", make_parameters(at::kFloat))->state()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "momentum.in_proj_weight", "momentum.linear1.weight", "momentum.linear2.weight", "step",
                       "m.embed.weight", "m.in_proj_bias", "m.norm.weight", "m.position.weight", "m.output.weight",
                       "v.embed.weight", "v.in_proj_bias", "v.norm.weight", "v.position.weight", "v.output.weight"}));
}

}  // namespace
}  // namespace plumb
