// Gradient clipping against loops over elements.
#include "plumb/optim/clipping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/gradcheck.h"

namespace plumb {
namespace {

TEST(Clipping, BringsTheGlobalNormToTheLimit) {
  // 3² + 4² + 12² = 13²
  const std::vector<Tensor> gradients = {at::full({1}, 3.0, at::kFloat), at::full({1, 1}, -4.0, at::kFloat),
                                         at::full({1}, 12.0, at::kFloat)};
  EXPECT_DOUBLE_EQ(global_norm(gradients), 13.0);
  EXPECT_DOUBLE_EQ(clip_scale(13.0, 6.5), 0.5);
  EXPECT_DOUBLE_EQ(clip_scale(13.0, 13.0), 1.0);
  EXPECT_DOUBLE_EQ(clip_scale(13.0, 100.0), 1.0);
  EXPECT_DOUBLE_EQ(clip_scale(13.0, 0.0), 1.0);
  // Frozen parameters do not count: 3² + 4² = 5².
  EXPECT_DOUBLE_EQ(square_norm(gradients, std::vector<ParameterStep>{{}, {}, {.frozen = true}}), 25.0);

  // Longer than a chunk: √(Σ_{i=1}^{n} i²), the sum in closed form.
  const double n = 100000;
  const Tensor long_one = at::arange(1, 100001, at::kDouble);
  EXPECT_NEAR(global_norm({long_one}), std::sqrt(n * (n + 1) * (2 * n + 1) / 6), 1e-3);
  EXPECT_TRUE(std::isnan(global_norm({long_one, at::full({3}, NAN, at::kDouble)})));
  EXPECT_TRUE(std::isinf(global_norm({at::full({3}, INFINITY, at::kFloat)})));
}

TEST(Clipping, LimitsEveryElement) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Tensor> clipped =
      clip_values({at::tensor({-3.0, -0.5, 0.0, 0.25, 2.0, nan, INFINITY}, at::kDouble), at::full({2, 2}, -9.0)}, 0.5);
  const double expected[] = {-0.5, -0.5, 0, 0.25, 0.5, nan, 0.5};
  for (int64_t i = 0; i < 7; ++i) {
    const auto found = clipped[0][i].item<double>();
    EXPECT_TRUE(found == expected[i] || (std::isnan(found) && std::isnan(expected[i]))) << i;
  }
  EXPECT_TRUE(at::equal(clipped[1], at::full({2, 2}, -0.5)));
}

TEST(Clipping, LimitsEveryBlockToAShareOfItsWeights) {
  Parameters parameters(at::kDouble);
  parameters.add("matrix", {4, 3}, Role::weight);
  parameters.add("vector", {5}, Role::bias);
  parameters.add("readout", {2, 3}, Role::readout);
  parameters.allocate();
  parameters.flat().copy_(testing::random_tensor({parameters.count()}, 1));
  parameters.at("matrix").value.detach()[2].zero_();  // its norm counts as 0.001
  std::vector<Tensor> gradients;
  for (const Tensor& value : parameters.values()) gradients.push_back(testing::random_tensor(value.sizes(), 2));
  gradients[0][1].mul_(0.01);  // shorter than the limit
  gradients[0][3].zero_();
  const double limit = 0.2;
  const std::vector<Tensor> clipped = clip_blocks(parameters, gradients, limit);
  const auto expect_block = [&](const Tensor& w, const Tensor& g, const Tensor& found, bool limited) {
    double weights = 0, length = 0;
    for (int64_t i = 0; i < w.numel(); ++i) {
      weights += std::pow(w[i].item<double>(), 2);
      length += std::pow(g[i].item<double>(), 2);
    }
    const double largest = limit * std::max(std::sqrt(weights), 1e-3);
    EXPECT_EQ(std::sqrt(length) > largest, limited);
    const double factor = limited ? largest / std::sqrt(length) : 1;
    for (int64_t i = 0; i < w.numel(); ++i) EXPECT_NEAR(found[i].item<double>(), factor * g[i].item<double>(), 1e-15);
  };
  const std::vector<Tensor> w = parameters.values();
  for (int64_t row = 0; row < 4; ++row)
    expect_block(w[0].detach()[row], gradients[0][row], clipped[0][row], row == 0 || row == 2);
  expect_block(w[1].detach(), gradients[1], clipped[1], true);
  EXPECT_TRUE(at::equal(clipped[2], gradients[2]));
}

TEST(Clipping, OfBlocksPassesOnANaN) {
  Parameters parameters(at::kFloat);
  parameters.add("matrix", {2, 3}, Role::weight);
  parameters.add("vector", {3}, Role::bias);
  parameters.allocate();
  std::vector<Tensor> gradients = {at::ones({2, 3}), at::ones({3})};
  gradients[0][1][2] = gradients[1][0] = NAN;
  const std::vector<Tensor> clipped = clip_blocks(parameters, gradients, 0.5);
  EXPECT_TRUE(std::isnan(clipped[0][1][2].item<double>()));
  EXPECT_TRUE(std::isnan(clipped[1][0].item<double>()));
  EXPECT_FALSE(clipped[0][0].isnan().any().item<bool>());
}

}  // namespace
}  // namespace plumb
