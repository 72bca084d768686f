// The Hessian of a function other than a model's loss, and the spectrum of any operator.
#include "plumb/analysis/curvature/function_hessian.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "plumb/analysis/curvature/spectrum.h"
#include "plumb/base/error.h"

namespace plumb {
namespace {

Tensor variable(double value) { return at::full({1}, value, at::kDouble).requires_grad_(true); }

// Rosenbrock's valley, f = (1 − x)² + 100·(y − x²)²: ∂²f/∂x² = 2 − 400·(y − 3x²), ∂²f/∂x∂y = −400·x, ∂²f/∂y² = 200.
TEST(FunctionHessian, IsThatOfRosenbrocksValley) {
  const Tensor x = variable(0.5);
  const Tensor y = variable(2.0);
  const LinearOperator hessian = function_hessian((1 - x).square() + 100 * (y - x.square()).square(), {x, y});
  const double xx = 2 - 400 * (2.0 - 3 * 0.25);
  const Tensor expected = at::tensor({xx, -200.0, -200.0, 200.0}, at::kDouble).view({2, 2});
  for (int64_t i = 0; i < 2; ++i) {
    const Tensor unit = at::zeros({2}, at::kDouble).index_fill(0, at::tensor({i}), 1.0);
    EXPECT_LT((hessian(unit) - expected[i]).abs().max().item<double>(), 1e-10) << "row " << i;
  }
}

TEST(FunctionHessian, OfALinearFunctionIsZero) {
  const Tensor x = variable(3.0);
  const Tensor unused = at::ones({2}, at::kDouble).requires_grad_(true);
  const LinearOperator hessian = function_hessian((2 * x).sum(), {x, unused});
  EXPECT_TRUE(hessian(at::ones({3}, at::kDouble)).equal(at::zeros({3}, at::kDouble)));
}

TEST(FunctionHessian, SaysWhatItCannotDifferentiate) {
  const Tensor x = variable(1.0);
  EXPECT_THROW(function_hessian(at::ones({1}), {x}), Error);             // does not depend on it
  EXPECT_THROW(function_hessian(at::cat({x, x}).square(), {x}), Error);  // two values
  EXPECT_THROW(function_hessian(x.square(), {}), Error);                 // nothing to differentiate with respect to
  const LinearOperator hessian = function_hessian(x.square(), {x});
  EXPECT_THROW(hessian(at::ones({2}, at::kDouble)), Error);
  EXPECT_THROW(hessian(at::ones({1}, at::kFloat)), Error);
}

// A chain of n + 1 springs between two walls: the eigenvalues of its stiffness are 4·sin²(kπ/(2n + 2)), k = 1 … n.
class Chain : public ::testing::Test {
 protected:
  static constexpr int64_t kLinks = 24;
  static double eigenvalue(int64_t k) {
    return 4 * std::pow(std::sin(static_cast<double>(k) * std::numbers::pi / (2.0 * (kLinks + 1))), 2);
  }
  static LinearOperator stiffness() {
    const Tensor x = at::zeros({kLinks}, at::kDouble).requires_grad_(true);
    const Tensor wall = at::zeros({1}, at::kDouble);
    return function_hessian(at::diff(x, 1, 0, wall, wall).square().sum() / 2, {x});
  }
};

TEST_F(Chain, LanczosFindsItsSpectrum) {
  SpectrumOptions options;
  options.steps = kLinks;
  options.probes = 3;
  options.at_once = 2;
  const Spectrum found = measure_spectrum(stiffness(), kLinks, at::kDouble, options);
  EXPECT_NEAR(found.max.value, eigenvalue(kLinks), 1e-9);
  EXPECT_NEAR(found.min.value, eigenvalue(1), 1e-9);
  EXPECT_EQ(found.probes.size(), 3U);
  EXPECT_EQ(found.negative.mean, 0);
}

TEST_F(Chain, DenseFindsEveryEigenvalue) {
  SpectrumOptions options;
  options.dense = true;
  const Spectrum found = measure_spectrum(stiffness(), kLinks, at::kDouble, options);
  ASSERT_EQ(found.eigenvalues.size(), static_cast<size_t>(kLinks));
  for (int64_t k = 1; k <= kLinks; ++k)
    EXPECT_NEAR(found.eigenvalues[static_cast<size_t>(k - 1)], eigenvalue(k), 1e-12) << k;
  EXPECT_NEAR(found.trace.mean, 2.0 * kLinks, 1e-10);
}

TEST_F(Chain, HasNoLayers) {
  SpectrumOptions options;
  options.by_layer = true;
  EXPECT_THROW(measure_spectrum(stiffness(), kLinks, at::kDouble, options), Error);
  EXPECT_THROW(measure_spectrum(stiffness(), 0, at::kDouble, {}), Error);
}

}  // namespace
}  // namespace plumb
