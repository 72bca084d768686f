// Optimizers against their formulas, element by element in double precision.
#include "plumb/optim/optimizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plumb/base/error.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

// Three parameters; the middle one longer than a thread's smallest share, so that pieces begin within it.
constexpr int64_t kShapes[3][2] = {{3, 5}, {301, 211}, {1, 7}};

Parameters make_parameters(at::ScalarType type) {
  Parameters parameters(type);
  for (int i = 0; i < 3; ++i) parameters.add(fmt::format("p{}", i), {kShapes[i][0], kShapes[i][1]}, Role::weight);
  parameters.finish();
  parameters.flat().copy_(testing::random_tensor({parameters.count()}, 7));
  return parameters;
}

std::vector<Tensor> make_gradients(const Parameters& parameters, uint64_t seed) {
  std::vector<Tensor> gradients;
  for (const auto& shape : kShapes) {
    // Transposed in memory: optimizers must go by elements, not by addresses.
    gradients.push_back(testing::random_tensor({shape[1], shape[0]}, seed++).t().to(parameters.type()));
  }
  return gradients;
}

std::vector<double> doubles(const Tensor& tensor) {
  const Tensor flat = tensor.detach().to(at::kDouble).contiguous().view({-1});
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << i;
}

class Optimizers : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  [[nodiscard]] double tolerance() const { return GetParam() == at::kDouble ? 1e-13 : 2e-5; }
};

TEST_P(Optimizers, AdamFollowsItsFormula) {
  const Parameters parameters = make_parameters(GetParam());
  const OptimizerOptions options{.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.01};
  const auto adam = optimizers().at("adam").make(parameters, options);
  std::vector<double> w = doubles(parameters.flat()), m(w.size()), v(w.size());
  for (int t = 1; t <= 4; ++t) {
    const double rate = 0.1 / t, scale = t == 2 ? 0.25 : 1.0;
    const auto gradients = make_gradients(parameters, 100 * static_cast<uint64_t>(t));
    const std::vector<double> g = doubles(joined(gradients));
    adam->step(gradients, rate, scale);
    for (size_t i = 0; i < w.size(); ++i) {
      m[i] = 0.8 * m[i] + 0.2 * scale * g[i];
      v[i] = 0.95 * v[i] + 0.05 * scale * scale * g[i] * g[i];
      const double mean = m[i] / (1 - std::pow(0.8, t)), square = v[i] / (1 - std::pow(0.95, t));
      w[i] -= rate * (mean / (std::sqrt(square) + 1e-6) + 0.01 * w[i]);
    }
    expect_near(doubles(parameters.flat()), w, tolerance());
  }
}

TEST_P(Optimizers, SgdFollowsItsFormula) {
  const Parameters parameters = make_parameters(GetParam());
  const auto sgd = optimizers().at("sgd").make(parameters, {.momentum = 0.7, .weight_decay = 0.02});
  std::vector<double> w = doubles(parameters.flat()), b(w.size());
  for (int t = 1; t <= 4; ++t) {
    const double rate = 0.1 / t, scale = t == 2 ? 0.25 : 1.0;
    const auto gradients = make_gradients(parameters, 100 * static_cast<uint64_t>(t));
    const std::vector<double> g = doubles(joined(gradients));
    sgd->step(gradients, rate, scale);
    for (size_t i = 0; i < w.size(); ++i) {
      b[i] = 0.7 * b[i] + scale * g[i] + 0.02 * w[i];
      w[i] -= rate * b[i];
    }
    expect_near(doubles(parameters.flat()), w, tolerance());
  }
}

TEST_P(Optimizers, GoOnFromTheirStateBitForBit) {
  for (const std::string& name : optimizers().names()) {
    const Parameters whole = make_parameters(GetParam()), halves = make_parameters(GetParam());
    const auto uninterrupted = optimizers().at(name).make(whole, {.weight_decay = 0.01});
    auto interrupted = optimizers().at(name).make(halves, {.weight_decay = 0.01});
    for (uint64_t t = 1; t <= 6; ++t) {
      if (t == 4) {
        const NamedTensors state = interrupted->state();
        interrupted = optimizers().at(name).make(halves, {.weight_decay = 0.01});
        interrupted->load_state(state, "state");
      }
      uninterrupted->step(make_gradients(whole, t), 0.01);
      interrupted->step(make_gradients(halves, t), 0.01);
    }
    EXPECT_TRUE(at::equal(whole.flat(), halves.flat())) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Optimizers, ::testing::Values(at::kFloat, at::kDouble),
                         [](const auto& info) { return std::string(at::toString(info.param)); });

TEST(OptimizerState, NamesWhatIsMissing) {
  const Parameters parameters = make_parameters(at::kFloat);
  const auto adam = optimizers().at("adam").make(parameters, {});
  NamedTensors state = adam->state();
  EXPECT_EQ(state.size(), 7U);  // the step, and m and v of three parameters
  std::erase_if(state, [](const auto& entry) { return entry.first == "v.p1"; });
  try {
    adam->load_state(state, "optimizer.safetensors");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "optimizer.safetensors: tensor 'v.p1' is missing");
  }
}

TEST(Clipping, BringsTheGlobalNormToTheLimit) {
  // 3² + 4² + 12² = 13²
  const std::vector<Tensor> gradients = {at::full({1}, 3.0, at::kFloat), at::full({1, 1}, -4.0, at::kFloat),
                                         at::full({1}, 12.0, at::kFloat)};
  EXPECT_DOUBLE_EQ(global_norm(gradients), 13.0);
  EXPECT_DOUBLE_EQ(clip_scale(13.0, 6.5), 0.5);
  EXPECT_DOUBLE_EQ(clip_scale(13.0, 13.0), 1.0);
  EXPECT_DOUBLE_EQ(clip_scale(13.0, 100.0), 1.0);
  EXPECT_DOUBLE_EQ(clip_scale(13.0, 0.0), 1.0);

  // Longer than a chunk: √(Σ_{i=1}^{n} i²), the sum in closed form.
  const double n = 100000;
  const Tensor long_one = at::arange(1, 100001, at::kDouble);
  EXPECT_NEAR(global_norm({long_one}), std::sqrt(n * (n + 1) * (2 * n + 1) / 6), 1e-3);
  EXPECT_TRUE(std::isnan(global_norm({long_one, at::full({3}, NAN, at::kDouble)})));
  EXPECT_TRUE(std::isinf(global_norm({at::full({3}, INFINITY, at::kFloat)})));
}

}  // namespace
}  // namespace plumb
