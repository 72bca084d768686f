// Lanczos, its basis and quadrature on operators whose spectra are known.
#include <gtest/gtest.h>

#include <cmath>

#include "plumb/analysis/curvature/basis.h"
#include "plumb/analysis/curvature/dense.h"
#include "plumb/analysis/curvature/lanczos.h"
#include "plumb/analysis/curvature/quadrature.h"
#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "support/batches.h"
#include "support/paths.h"

namespace plumb {
namespace {

/// diag(values), rotated by the reflection I − 2uuᵀ so that no coordinate is an eigenvector.
LinearOperator turned(const Tensor& values) {
  const Tensor u = at::cos(at::arange(values.numel(), at::kDouble) * 1.7 + 0.3);
  const Tensor unit = (u / u.norm()).to(values.scalar_type());
  const auto reflect = [unit](const Tensor& x) { return x - 2 * unit * (unit * x).sum(); };
  return [values, reflect](const Tensor& v) { return reflect(values * reflect(v)); };
}

/// A bulk around 0 and three outliers, 400 values in all.
Tensor bulk_and_outliers(at::ScalarType type = at::kDouble) {
  Tensor values = 0.5 * at::sin(at::arange(400, at::kDouble) * 0.37);
  values[0] = 7.25;
  values[1] = 4.5;
  values[2] = -3.125;
  return values.to(type);
}

Ritz run(const LinearOperator& multiply, int64_t n, int64_t steps, int64_t index = 0,
         at::ScalarType type = at::kDouble) {
  LanczosOptions options;
  options.steps = steps;
  return ritz(lanczos(multiply, random_probe(n, type, 11, index), options));
}

TEST(Lanczos, FindsOutliersOfAKnownSpectrum) {
  const Ritz found = run(turned(bulk_and_outliers()), 400, 40);
  EXPECT_NEAR(found.values.back(), 7.25, 1e-12);
  EXPECT_NEAR(found.values[found.values.size() - 2], 4.5, 1e-12);
  EXPECT_NEAR(found.values.front(), -3.125, 1e-12);
  EXPECT_LT(found.residuals.back(), 1e-10);
  double mass = 0;
  for (const double weight : found.weights) mass += weight;
  EXPECT_NEAR(mass, 1, 1e-12);
}

TEST(Lanczos, AllStepsGiveEveryEigenvalueOnce) {
  // Without re-orthogonalization, copies of the outliers would replace other eigenvalues.
  Tensor expected = at::arange(60, at::kDouble) * at::arange(60, at::kDouble) / 100;
  const Ritz found = run(turned(expected), 60, 60);
  ASSERT_EQ(found.values.size(), 60U);
  for (size_t i = 0; i < 60; ++i) EXPECT_NEAR(found.values[i], static_cast<double>(i * i) / 100, 1e-11);
}

TEST(Lanczos, SinglePrecisionFindsOutliersToItsRounding) {
  const Ritz found = run(turned(bulk_and_outliers(at::kFloat)), 400, 40, 0, at::kFloat);
  EXPECT_NEAR(found.values.back(), 7.25, 1e-5);
  EXPECT_NEAR(found.values.front(), -3.125, 1e-5);
}

TEST(Lanczos, ResidualsBoundTheErrorBeforeConvergence) {
  const Tensor values = bulk_and_outliers();
  for (const int64_t steps : {2, 3, 5, 8}) {
    const Ritz found = run(turned(values), 400, steps);
    for (size_t i = 0; i < found.values.size(); ++i) {
      const double nearest = (values - found.values[i]).abs().min().item<double>();
      EXPECT_LE(nearest, found.residuals[i] + 1e-12) << "step " << steps;
    }
    EXPECT_GT(found.residuals[found.values.size() / 2], 1e-3);
  }
}

TEST(Lanczos, StopsWhenTheSubspaceIsExhausted) {
  // Rank 3: the start vector spans at most three eigenvectors and its part in the null space.
  Tensor values = at::zeros({50}, at::kDouble);
  values[3] = 2.0;
  values[20] = -1.0;
  values[41] = 0.5;
  LanczosOptions options;
  options.steps = 30;
  const Tridiagonal tridiagonal = lanczos(turned(values), random_probe(50, at::kDouble, 5, 0), options);
  EXPECT_TRUE(tridiagonal.exhausted);
  ASSERT_EQ(tridiagonal.alpha.size(), 4U);
  const Ritz found = ritz(tridiagonal);
  const double expected[] = {-1.0, 0.0, 0.5, 2.0};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(found.values[i], expected[i], 1e-12);
}

TEST(Lanczos, OperatorsThatReturnTheirInputOrZero) {
  LanczosOptions options;
  const Tensor start = random_probe(20, at::kDouble, 1, 0);
  const Tridiagonal identity = lanczos([](const Tensor& v) { return v; }, start, options);
  ASSERT_EQ(identity.alpha.size(), 1U);
  EXPECT_NEAR(identity.alpha[0], 1, 1e-14);
  const Tridiagonal zero = lanczos([](const Tensor& v) { return at::zeros_like(v); }, start, options);
  EXPECT_TRUE(zero.exhausted);
  EXPECT_EQ(zero.alpha[0], 0);
}

// A sum of that many squares in float32 is off by about a percent.
TEST(Lanczos, ALongVectorIsNormalizedToo) {
  const Tensor start = random_probe(10'000'000, at::kFloat, 1, 0);
  const Tridiagonal identity = lanczos([](const Tensor& v) { return v; }, start, {});
  EXPECT_NEAR(identity.alpha[0], 1, 1e-6);
}

TEST(Lanczos, StartsFromAColumnOfAMatrix) {
  const Tensor start = random_probe(50, at::kDouble, 1, 0);
  const Tensor column = at::stack({start, at::full_like(start, 7)}, 1).select(1, 0);
  const LinearOperator multiply = turned(at::arange(50, at::kDouble));
  EXPECT_EQ(lanczos(multiply, column, {.steps = 5}).alpha, lanczos(multiply, start, {.steps = 5}).alpha);
}

TEST(Lanczos, ReportsWhatIsNotSymmetric) {
  LanczosOptions options;
  options.steps = 20;
  const Tensor start = random_probe(400, at::kDouble, 2, 0);
  const LinearOperator symmetric = turned(bulk_and_outliers());
  EXPECT_LT(lanczos(symmetric, start, options).rounding, 1e-13);
  const Tensor a = random_probe(400, at::kDouble, 2, 1);
  const Tensor b = random_probe(400, at::kDouble, 2, 2);
  const auto with_error = [&](const Tensor& v) { return symmetric(v) + 1e-3 * a * b.dot(v); };
  const double rounding = lanczos(with_error, start, options).rounding;
  EXPECT_GT(rounding, 1e-5);
  EXPECT_LT(rounding, 2e-3);
}

/// In the basis, products with an error c along every earlier direction differ from those of a symmetric matrix by a
/// matrix E with c everywhere off the diagonal. By Weyl, Ritz values may be off by its spectral norm, c·(m − 1).
TEST(Lanczos, RoundingBoundsTheSpectralNormOfTheDeviation) {
  constexpr double kError = 1e-3;
  LanczosOptions options;
  options.steps = 5;
  std::vector<Tensor> directions;
  const LinearOperator symmetric = turned(bulk_and_outliers());
  const Tridiagonal found = lanczos(
      [&](const Tensor& v) {
        Tensor product = symmetric(v);
        for (const Tensor& earlier : directions) product = product + kError * earlier;
        directions.push_back(v.clone());
        return product;
      },
      random_probe(400, at::kDouble, 2, 0), options);
  ASSERT_EQ(found.alpha.size(), 5U);
  EXPECT_GE(found.rounding, kError * 4);
  EXPECT_NEAR(found.rounding, kError * std::sqrt(20.0), 1e-12);  // ‖E‖_F
}

TEST(Lanczos, EndsEarlyAtItsTolerance) {
  LanczosOptions options;
  options.steps = 300;
  options.tolerance = 1e-6;
  const Tridiagonal tridiagonal = lanczos(turned(bulk_and_outliers()), random_probe(400, at::kDouble, 2, 0), options);
  EXPECT_LT(tridiagonal.alpha.size(), 60U);
  EXPECT_LE(ritz(tridiagonal).residuals.back(), 1e-6 * 7.25);
}

TEST(Lanczos, RefusesWhatHasNoSpectrum) {
  LanczosOptions options;
  EXPECT_THROW(lanczos([](const Tensor& v) { return v; }, at::zeros({5}, at::kDouble), options), Error);
  EXPECT_THROW(lanczos([](const Tensor& v) { return v / 0.0; }, at::ones({5}, at::kDouble), options), Error);
}

TEST(Lanczos, ProbesAreSignsAndDifferByIndex) {
  const Tensor first = random_probe(1000, at::kDouble, 3, 0);
  EXPECT_NEAR(first.norm().item<double>(), 1, 1e-14);
  EXPECT_TRUE(first.abs().allclose(at::full({1000}, 1 / std::sqrt(1000.0), at::kDouble)));
  EXPECT_LT(std::abs(first.sum().item<double>()), 5);  // five standard deviations
  EXPECT_TRUE(first.equal(random_probe(1000, at::kDouble, 3, 0)));
  EXPECT_LT(std::abs(first.dot(random_probe(1000, at::kDouble, 3, 1)).item<double>()), 0.2);
}

TEST(Basis, OrthogonalizeLeavesNoComponentAndReportsThem) {
  // More than one block per part, and a partial last block.
  constexpr int64_t kSize = 200'003;
  const test::TemporaryDirectory scratch;
  for (const bool in_file : {false, true}) {
    Basis basis(3, kSize, at::kDouble, in_file ? scratch.path() : std::filesystem::path());
    std::vector<Tensor> raw;
    for (int64_t k = 0; k < 3; ++k) raw.push_back(random_probe(kSize, at::kDouble, 9, k));
    for (const Tensor& vector : raw) {
      Tensor w = vector.clone();
      basis.append(w, 1 / basis.orthogonalize(w).norm);
    }
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j <= i; ++j) EXPECT_NEAR(basis[i].dot(basis[j]).item<double>(), i == j ? 1 : 0, 1e-12);
    }
    Tensor w = 2 * basis[0] - 3 * basis[2] + 1e-3 * random_probe(kSize, at::kDouble, 9, 7);
    const Tensor before = w.clone();
    const Basis::Projection projection = basis.orthogonalize(w);
    EXPECT_NEAR(projection.coefficients[0], basis[0].dot(before).item<double>(), 1e-12);
    EXPECT_NEAR(projection.coefficients[2], -3, 1e-4);
    EXPECT_NEAR(projection.norm, w.norm().item<double>(), 1e-12);
    EXPECT_NEAR(projection.norm, 1e-3, 1e-5);
    EXPECT_LT(std::abs(basis[2].dot(w).item<double>()), 1e-17);
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

TEST(Basis, ADirectoryThatCannotHoldItIsAnError) {
  EXPECT_THROW(Basis(2, 10, at::kFloat, "/nonexistent/directory"), Error);
}

std::vector<Ritz> several_probes(int64_t count) {
  std::vector<Ritz> probes;
  for (int64_t index = 0; index < count; ++index) probes.push_back(run(turned(bulk_and_outliers()), 400, 30, index));
  return probes;
}

TEST(Quadrature, DensityIntegratesToOne) {
  for (const double sigma : {0.0, 0.05, 0.5}) {
    const Density density = smoothed_density(several_probes(3), sigma);
    double integral = 0;
    for (size_t i = 1; i < density.x.size(); ++i) {
      integral += 0.5 * (density.y[i] + density.y[i - 1]) * (density.x[i] - density.x[i - 1]);
    }
    EXPECT_NEAR(integral, 1, 1e-5);
    for (size_t i = 0; i < density.x.size(); ++i) {
      EXPECT_LE(density.low[i], density.y[i]);
      EXPECT_GE(density.high[i], density.y[i]);
      EXPECT_GE(density.low[i], 0);
    }
    EXPECT_GT(density.sigma, 0);
    if (sigma > 0) {
      EXPECT_EQ(density.sigma, sigma);
    }
  }
  EXPECT_TRUE(smoothed_density(several_probes(1), 0).low.empty());
}

TEST(Quadrature, DensityIsThatOfTheExactEigenvalues) {
  // A wide kernel: the mean over many probes approaches Σ N(x; λ_i, σ²)/n, computed here from the eigenvalues.
  const Tensor values = bulk_and_outliers();
  const Density density = smoothed_density(several_probes(30), 0.4);
  for (size_t i = 0; i < density.x.size(); i += 10) {
    const Tensor z = (density.x[i] - values) / 0.4;
    const double exact = at::exp(-0.5 * z * z).mean().item<double>() / (0.4 * std::sqrt(2 * M_PI));
    EXPECT_NEAR(density.y[i], exact, 0.01);
  }
}

/// If a probe's density is normally distributed, 95% of the bands contain its expectation, even with two probes.
TEST(Quadrature, BandsOfTwoProbesContainTheDensity) {
  constexpr int kRepetitions = 400;
  Random random(3, "bands");
  int within = 0;
  for (int i = 0; i < kRepetitions; ++i) {
    std::vector<Ritz> probes;
    // Density at 0 of one node whose weight is normal around 0.5; a second node far away has the rest.
    for (int probe = 0; probe < 2; ++probe) {
      const double weight = 0.5 + 0.01 * random.normal();
      probes.push_back({{0, 1000}, {weight, 1 - weight}, {0, 0}});
    }
    const Density density = smoothed_density(probes, 10);
    size_t nearest = 0;
    for (size_t k = 0; k < density.x.size(); ++k) {
      if (std::abs(density.x[k]) < std::abs(density.x[nearest])) nearest = k;
    }
    const double z = density.x[nearest] / 10;
    const double expected = 0.5 * std::exp(-0.5 * z * z) / (10 * std::sqrt(2 * M_PI));
    within += density.low[nearest] <= expected && expected <= density.high[nearest] ? 1 : 0;
  }
  // 95% ± 4 standard deviations of a binomial count.
  EXPECT_NEAR(within, 0.95 * kRepetitions, 4 * std::sqrt(kRepetitions * 0.95 * 0.05));
}

TEST(Quadrature, TraceLiesWithinItsStandardError) {
  const Tensor values = bulk_and_outliers();
  const Estimate mean = spectral_mean(several_probes(20), [](double x) { return x; });
  const double exact = values.mean().item<double>();
  ASSERT_TRUE(mean.error.has_value());
  EXPECT_LT(std::abs(mean.mean - exact), 3 * *mean.error);
  // Hutchinson: the variance of one probe is 2·Σ_{i≠j} A_ij²/n² ≤ 2·Σ λ²/n².
  const double most = std::sqrt(2 * (values * values).sum().item<double>()) / 400 / std::sqrt(20.0);
  EXPECT_LT(*mean.error, 1.6 * most);
  EXPECT_GT(*mean.error, 0.1 * most);
  EXPECT_FALSE(spectral_mean(several_probes(1), [](double x) { return x; }).error.has_value());
}

TEST(Quadrature, MeanWithError) {
  const Estimate estimate = mean_with_error({1, 2, 6});
  EXPECT_DOUBLE_EQ(estimate.mean, 3);
  EXPECT_DOUBLE_EQ(*estimate.error, std::sqrt(7.0 / 3));  // variance (4 + 1 + 9)/2 = 7
}

TEST(Quadrature, Quantiles) {
  const std::vector<Ritz> probes = {as_probe({-1, 0, 2, 4})};
  EXPECT_DOUBLE_EQ(spectral_quantile(probes, 0.5), 1);  // half-way from 0 (3/8) to 2 (5/8)
  EXPECT_DOUBLE_EQ(spectral_quantile(probes, 0.375), 0);
  EXPECT_DOUBLE_EQ(spectral_quantile(probes, 0.01), -1);
  EXPECT_DOUBLE_EQ(spectral_quantile(probes, 0.99), 4);
  const std::vector<Ritz> two = {{{0, 10}, {0.25, 0.75}, {0, 0}}, {{5}, {1}, {0}}};
  EXPECT_DOUBLE_EQ(spectral_quantile(two, 0.375), 5);  // 0 has 1/8, 5 has 1/2, 10 has 3/8
}

TEST(Dense, EveryEigenvalue) {
  const Tensor values = bulk_and_outliers();
  const DenseSpectrum spectrum = dense_spectrum(turned(values), 400, at::kDouble);
  const Tensor sorted = std::get<0>(values.sort());
  for (int64_t i = 0; i < 400; ++i)
    EXPECT_NEAR(spectrum.eigenvalues[static_cast<size_t>(i)], sorted[i].item<double>(), 1e-12);
  EXPECT_LT(spectrum.asymmetry, 1e-14);
}

TEST(Dense, ReportsAsymmetryAndRefusesTheLarge) {
  const Tensor matrix = at::tensor({1.0, 0.5, 0.3, 2.0}, at::kDouble).view({2, 2});
  const DenseSpectrum spectrum = dense_spectrum([&](const Tensor& v) { return matrix.mv(v); }, 2, at::kDouble);
  EXPECT_NEAR(spectrum.asymmetry, 0.2, 1e-15);
  EXPECT_NEAR(spectrum.error, std::sqrt(2.0) * 0.1, 1e-15);
  EXPECT_THROW(dense_spectrum([](const Tensor& v) { return v; }, 20'000, at::kFloat), Error);
}

}  // namespace
}  // namespace plumb
