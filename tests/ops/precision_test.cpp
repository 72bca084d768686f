// Products in bfloat16: operands rounded like ATen does, sums and everything else in float32.
#include "plumb/ops/precision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "plumb/base/error.h"
#include "plumb/ops/cross_entropy.h"
#include "plumb/ops/linear.h"
#include "plumb/ops/recompute.h"
#include "support/bfloat16.h"
#include "support/gradcheck.h"

namespace plumb {
namespace {

using test::has_bfloat16_products;
using testing::random_tensor;

Tensor floats(at::IntArrayRef shape, uint64_t seed) { return random_tensor(shape, seed).to(at::kFloat); }

/// x rounded to bfloat16 by ATen, in float64.
Tensor rounded(const Tensor& x) { return x.detach().to(at::kBFloat16).to(at::kDouble); }

void expect_near(const Tensor& found, const Tensor& wanted) {
  ASSERT_EQ(found.sizes(), wanted.sizes());
  const double scale = wanted.abs().max().item<double>();
  EXPECT_LE((found.to(at::kDouble) - wanted).abs().max().item<double>(), 1e-5 * scale);
}

TEST(Precision, HasNames) {
  EXPECT_EQ(ops::precision_of("float32"), ops::Precision::float32);
  EXPECT_EQ(ops::precision_of("bf16"), ops::Precision::bfloat16);
  EXPECT_EQ(ops::precision_of("int8"), ops::Precision::int8);
  EXPECT_THROW(ops::precision_of("bf61"), Error);
}

TEST(Precision, RoundsToNearestEven) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0.0F,         -0.0F,   1.0F,   1.00390625F, 1.01171875F,
                               -1.00390625F, 3.4e38F, 1e-40F, infinity,    -infinity};
  const Tensor noise = floats({1001}, 1);
  values.insert(values.end(), noise.data_ptr<float>(), noise.data_ptr<float>() + noise.numel());
  const Tensor x = at::tensor(values);
  EXPECT_TRUE(at::equal(ops::to_bfloat16(x), x.to(at::kBFloat16)));
  EXPECT_TRUE(at::equal(ops::to_bfloat16(x.to(at::kDouble)), x.to(at::kBFloat16)));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(ops::to_bfloat16(at::full({40}, nan)).to(at::kFloat).sum().item<float>()));
}

TEST(Precision, LinearMultipliesRoundedOperands) {
  if (!has_bfloat16_products()) GTEST_SKIP() << "this processor has no bfloat16 products";
  for (const bool relu : {false, true}) {
    Tensor x = floats({37, 19}, 1).requires_grad_(true);
    Tensor weight = floats({23, 19}, 2).requires_grad_(true);
    Tensor bias = floats({23}, 3).requires_grad_(true);
    const Tensor dy = floats({37, 23}, 4);
    ops::MatrixPrecision precision(ops::Precision::bfloat16);
    const ops::PrecisionGuard guard(precision);
    const Tensor y = ops::linear(x, weight, bias, relu ? ops::Activation::relu : ops::Activation::none);
    const auto gradient = gradients({y}, {x, weight, bias}, {dy});
    const Tensor sum = at::mm(rounded(x), rounded(weight).t()) + bias.detach().to(at::kDouble);
    const Tensor dz = relu ? dy * (sum > 0) : dy;
    expect_near(y, relu ? sum.relu() : sum);
    expect_near(gradient[0], at::mm(rounded(dz), rounded(weight)));
    expect_near(gradient[1], at::mm(rounded(dz).t(), rounded(x)));
    expect_near(gradient[2], dz.to(at::kDouble).sum(0));
  }
}

TEST(Precision, CrossEntropyMultipliesRoundedOperands) {
  if (!has_bfloat16_products()) GTEST_SKIP() << "this processor has no bfloat16 products";
  Tensor hidden = floats({21, 16}, 1).requires_grad_(true);
  Tensor weight = floats({30, 16}, 2).requires_grad_(true);
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 21; ++i) labels.push_back(i % 30);
  ops::MatrixPrecision precision(ops::Precision::bfloat16);
  const ops::PrecisionGuard guard(precision);
  const auto found = ops::linear_cross_entropy(hidden, weight, Tensor(), labels, {}, 0.0, 0.5);
  const Tensor log_p = at::log_softmax(at::mm(rounded(hidden), rounded(weight).t()), 1);
  const Tensor target = at::one_hot(at::tensor(labels), 30).to(at::kDouble);
  const double nll = -(log_p * target).sum().item<double>();
  EXPECT_NEAR(found.nll, nll, 1e-5 * nll);
  const auto gradient = gradients({found.loss}, {hidden, weight}, {});
  const Tensor dlogits = 0.5 * (log_p.exp() - target);
  expect_near(gradient[0], at::mm(rounded(dlogits), rounded(weight)));
  expect_near(gradient[1], at::mm(rounded(dlogits).t(), rounded(hidden)));
}

TEST(Precision, HasNoSecondDerivative) {
  if (!has_bfloat16_products()) GTEST_SKIP() << "this processor has no bfloat16 products";
  Tensor x = floats({4, 3}, 1).requires_grad_(true);
  const Tensor weight = floats({5, 3}, 2).requires_grad_(true);
  ops::MatrixPrecision precision(ops::Precision::bfloat16);
  const ops::PrecisionGuard guard(precision);
  const Tensor y = ops::linear(x, weight, Tensor());
  EXPECT_THROW(gradients({y.sum()}, {x}, {}, /*create_graph=*/true), Error);
}

// The graph of a recomputed part remembers the precision of its forward pass, not the object that had it.
TEST(Precision, OfARecomputedPartOutlivesItsGuard) {
  if (!has_bfloat16_products()) GTEST_SKIP() << "this processor has no bfloat16 products";
  const Tensor x = floats({37, 19}, 1).requires_grad_(true), weight = floats({23, 19}, 2).requires_grad_(true);
  const ops::Part part = [&](const std::vector<Tensor>& inputs) {
    return std::vector<Tensor>{ops::linear(inputs[0], weight, Tensor(), ops::Activation::relu)};
  };
  const Tensor dy = floats({37, 23}, 3);
  std::optional<ops::MatrixPrecision> precision(std::in_place, ops::Precision::bfloat16);
  std::optional<ops::PrecisionGuard> guard(std::in_place, *precision);
  const std::vector<Tensor> expected = gradients({part({x})[0]}, {x, weight}, {dy});
  const Tensor y = ops::recomputed({x}, {part, part})[0];
  guard.reset();
  precision.emplace(ops::Precision::float32);  // at the same address
  const std::vector<Tensor> found = gradients({y}, {x, weight}, {dy});
  for (const size_t i : {0, 1}) EXPECT_TRUE(found[i].equal(expected[i])) << i;
}

TEST(Precision, EndsWithItsGuardAndLeavesFloat64Alone) {
  const Tensor x = floats({4, 3}, 1);
  const Tensor weight = floats({5, 3}, 2);
  ops::MatrixPrecision precision(ops::Precision::bfloat16);
  {
    const ops::PrecisionGuard guard(precision);
    EXPECT_TRUE(ops::rounds_to_bfloat16(x));
    EXPECT_FALSE(ops::rounds_to_bfloat16(x.to(at::kDouble)));
  }
  EXPECT_FALSE(ops::rounds_to_bfloat16(x));
}

}  // namespace
}  // namespace plumb
