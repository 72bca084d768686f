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

// The same valley as the sum of two terms, whose graphs are kept or built again.
TEST(FunctionHessian, IsThatOfASumOfTerms) {
  const Tensor x = variable(0.5);
  const Tensor y = variable(2.0);
  int calls = 0;
  const std::vector<FunctionTerm> terms = {[&] { return ++calls, (1 - x).square(); },
                                           [&] { return ++calls, 100 * (y - x.square()).square(); }};
  for (const int64_t memory : {int64_t{1} << 30, int64_t{0}}) {
    calls = 0;
    FunctionHessian hessian({x, y}, terms, memory);
    const Tensor first = hessian.multiply({at::tensor({1.0, 0.0}, at::kDouble)}).front();
    EXPECT_LT((first - at::tensor({2 - 400 * 1.25, -200.0}, at::kDouble)).abs().max().item<double>(), 1e-10);
    EXPECT_EQ(hessian.kept(), memory > 0 ? 2U : 0U);
    const std::vector<Tensor> blocks =
        hessian.multiply_blocks({{1}, {0}}, {at::tensor({3.0}, at::kDouble), at::tensor({1.0}, at::kDouble)});
    EXPECT_NEAR(blocks[0].item<double>(), 600, 1e-10);
    EXPECT_NEAR(blocks[1].item<double>(), 2 - 400 * 1.25, 1e-10);
    EXPECT_EQ(calls, memory > 0 ? 2 : 4);
  }
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

// With all other links held, some neighboring ones are a shorter chain.
TEST_F(Chain, BlocksAreShorterChains) {
  const std::vector<int64_t> sizes = {11, 13};
  const Tensor x = at::zeros({11}, at::kDouble).requires_grad_(true);
  const Tensor y = at::zeros({13}, at::kDouble).requires_grad_(true);
  const Tensor wall = at::zeros({1}, at::kDouble);
  FunctionHessian hessian({x, y}, {[&] {
                            return at::diff(at::cat({x, y}), 1, 0, wall, wall).square().sum() / 2;
                          }},
                          1 << 30);
  const auto multiply = [&](const std::vector<int64_t>& which, const std::vector<Tensor>& vectors) {
    std::vector<std::vector<size_t>> blocks;
    for (const int64_t i : which) blocks.push_back({static_cast<size_t>(i)});
    return hessian.multiply_blocks(blocks, vectors);
  };
  SpectrumOptions options;
  options.steps = 13;
  const std::vector<VectorSpace> spaces(sizes.begin(), sizes.end());
  const std::vector<Spectrum> found = measure_spectra(multiply, spaces, at::kDouble, options);
  for (size_t i = 0; i < 2; ++i) {
    const double angle = std::numbers::pi / (2.0 * static_cast<double>(sizes[i] + 1));
    EXPECT_NEAR(found[i].min.value, 4 * std::pow(std::sin(angle), 2), 1e-9);
    EXPECT_NEAR(found[i].max.value, 4 * std::pow(std::cos(angle), 2), 1e-9);
  }
  options.dense = true;
  EXPECT_THROW(measure_spectra(multiply, spaces, at::kDouble, options), Error);
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
