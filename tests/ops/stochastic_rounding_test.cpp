// Stochastic rounding to bfloat16: the two neighbors and their probabilities.
#include "plumb/ops/stochastic_rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plumb/base/error.h"
#include "plumb/ops/implementations.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

constexpr int64_t kDraws = 100000;

Tensor stochastic(const Tensor& x, uint64_t seed, uint64_t stream) {
  Tensor copy = x.clone();
  ops::round_stochastically(copy, {seed, stream});
  return copy;
}

/// The neighbors of x in magnitude among the numbers with 8 significant bits.
struct Neighbors {
  double below, above;
};
Neighbors neighbors(double x) {
  const double unit = std::ldexp(1.0, std::ilogb(x) - 7);
  const double below = std::floor(std::abs(x) / unit) * unit;
  return {std::copysign(below, x), std::copysign(below + unit, x)};
}

TEST(StochasticRounding, IsOneOfTheNeighborsWithTheMeanOfTheNumber) {
  for (const float x : {1.001F, 1.0037F, -2.71828F, 3e-5F, -0.19921F, 65535.7F, 1.9999F}) {
    const auto [below, above] = neighbors(x);
    const Tensor found = stochastic(at::full({kDraws}, x, at::kFloat), 5, 9).to(at::kDouble);
    EXPECT_TRUE(found.eq(below).logical_or(found.eq(above)).all().item<bool>()) << x;
    const double share = (static_cast<double>(x) - below) / (above - below);
    const double error = std::abs(above - below) * std::sqrt(share * (1 - share) / static_cast<double>(kDraws));
    EXPECT_NEAR(found.mean().item<double>(), static_cast<double>(x), 4 * error) << x;
  }
}

TEST(StochasticRounding, LeavesNumbersOfBfloat16AndWhatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = at::tensor(std::vector<float>{0.0F, -0.0F, 1.0F, -1.5F, 0.00390625F, infinity, -infinity});
  for (uint64_t stream = 0; stream < 50; ++stream) EXPECT_TRUE(at::equal(stochastic(x, 1, stream), x));
  // Also a NaN whose only mantissa bit is in the half that is dropped.
  const Tensor bits = at::full({64}, 0x7F800001, at::kInt);
  EXPECT_TRUE(stochastic(bits.view(at::kFloat), 1, 2).isnan().all().item<bool>());
}

TEST(StochasticRounding, DrawsAreAFunctionOfKeyAndIndex) {
  const Tensor x = testing::random_tensor({50001}, 3).to(at::kFloat);
  const Tensor found = stochastic(x, 7, 8);
  EXPECT_TRUE(at::equal(found, stochastic(x, 7, 8)));
  EXPECT_FALSE(at::equal(found, stochastic(x, 7, 9)));
  EXPECT_FALSE(at::equal(found, stochastic(x, 8, 8)));
  EXPECT_TRUE(at::equal(found.narrow(0, 0, 1001), stochastic(x.narrow(0, 0, 1001).clone(), 7, 8)));
}

TEST(StochasticRounding, NeighboringIndicesAndStreamsAreIndependent) {
  // Halfway between two numbers, each is rounded up with probability 1/2, and both of a pair with 1/4.
  const Tensor x = at::full({kDraws}, 1.00390625F, at::kFloat);
  const Tensor up = stochastic(x, 1, 1).gt(x), other = stochastic(x, 1, 2).gt(x);
  const double error = std::sqrt(0.25 * 0.75 / static_cast<double>(kDraws));
  for (int64_t distance = 1; distance <= 8; ++distance) {
    const int64_t pairs = kDraws - distance;
    const Tensor both = up.narrow(0, 0, pairs).logical_and(up.narrow(0, distance, pairs));
    EXPECT_NEAR(both.to(at::kDouble).mean().item<double>(), 0.25, 5 * error) << distance;
  }
  EXPECT_NEAR(up.logical_and(other).to(at::kDouble).mean().item<double>(), 0.25, 4 * error);
}

TEST(StochasticRounding, TheReferenceDrawsTheSame) {
  Tensor x = testing::random_tensor({(1 << 20) + 13}, 4).to(at::kFloat);
  x[5] = std::numeric_limits<float>::quiet_NaN();
  Tensor reference = x.clone();
  ops::reference::round_stochastically(reference, {11, 12});
  EXPECT_TRUE(at::equal(stochastic(x, 11, 12).view(at::kInt), reference.view(at::kInt)));
}

TEST(StochasticRounding, ToNearestIsThatOfLibTorch) {
  const Tensor x = testing::random_tensor({1000}, 6).to(at::kFloat);
  Tensor found = x.clone();
  ops::round_to_nearest(found);
  EXPECT_TRUE(at::equal(found, x.to(at::kBFloat16).to(at::kFloat)));
}

TEST(StochasticRounding, RefusesOtherTensors) {
  EXPECT_THROW(ops::round_stochastically(at::ones({4}, at::kDouble), {}), Error);
  EXPECT_THROW(ops::round_stochastically(at::ones({4, 4}, at::kFloat).t().narrow(0, 0, 2), {}), Error);
}

}  // namespace
}  // namespace plumb
