// The largest eigenvalue of operators with known spectra, from random and from previous vectors.
#include "plumb/analysis/curvature/largest.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plumb/base/error.h"

namespace plumb {
namespace {

constexpr int64_t kSize = 300;

/// Orthonormal eigenvectors, as columns.
Tensor eigenvectors() {
  const Tensor mixed = at::sin(at::arange(kSize * kSize, at::kDouble) * 1.37).view({kSize, kSize});
  return std::get<0>(at::linalg_qr(mixed));
}

/// A bulk in [−1, 1] and two outliers: `largest` at index 0, and −9.
Tensor spectrum(double largest) {
  Tensor values = at::cos(at::arange(kSize, at::kDouble) * 0.9);
  values[0] = largest;
  values[1] = -9;
  return values;
}

LinearOperator operator_of(const Tensor& vectors, const Tensor& values) {
  const Tensor matrix = at::matmul(vectors * values, vectors.t());
  return [matrix](const Tensor& v) { return at::mv(matrix, v); };
}

Tensor probe(int64_t index) { return random_probe(kSize, at::kDouble, 5, index); }

TEST(LargestEigenpair, IsTheLargestAndNotThatOfLargestMagnitude) {
  const Tensor vectors = eigenvectors();
  const LinearOperator multiply = operator_of(vectors, spectrum(4));
  const Eigenpair found = largest_eigenpair(multiply, probe(0), {60, 1e-9});
  EXPECT_NEAR(found.value, 4, 1e-9);
  EXPECT_LE(found.residual, 4e-9);
  EXPECT_LT(found.products, 60);  // the tolerance ends it
  EXPECT_NEAR(std::abs(found.vector.dot(vectors.select(1, 0)).item<double>()), 1, 1e-12);
  EXPECT_NEAR(found.vector.norm().item<double>(), 1, 1e-12);
  EXPECT_NEAR(found.second.norm().item<double>(), 1, 1e-12);
  EXPECT_NEAR(found.second.dot(found.vector).item<double>(), 0, 1e-10);
  const Eigenpair rough = largest_eigenpair(multiply, probe(0), {6, 0});
  EXPECT_EQ(rough.products, 6);
  const double residual = (multiply(rough.vector) - rough.value * rough.vector).norm().item<double>();
  EXPECT_NEAR(rough.residual, residual, 1e-9);
  EXPECT_LE(rough.value, 4);
  EXPECT_THROW(largest_eigenpair(multiply, at::zeros({kSize}, at::kDouble), {6, 0}), Error);
}

TEST(LargestEigenpair, OfAnOperatorThatChangesLittleTakesFewProducts) {
  const Tensor vectors = eigenvectors();
  const Eigenpair first = largest_eigenpair(operator_of(vectors, spectrum(4)), probe(0), {60, 1e-3});
  // The vectors turn by about 0.05, and the eigenvalue grows.
  const Tensor turned = std::get<0>(
      at::linalg_qr(vectors + 0.003 * at::cos(at::arange(kSize * kSize, at::kDouble) * 0.77).view({kSize, kSize})));
  const LinearOperator changed = operator_of(turned, spectrum(4.2));
  const Eigenpair cold = largest_eigenpair(changed, probe(1), {60, 1e-2});
  const Eigenpair warm = largest_eigenpair(changed, first.vector, {60, 1e-2});
  EXPECT_NEAR(warm.value, 4.2, 1e-3);
  EXPECT_LE(warm.products, 3);
  EXPECT_GT(cold.products, warm.products + 3);
}

TEST(LargestEigenpair, TheSecondVectorIsReadyToOvertake) {
  const Tensor vectors = eigenvectors();
  Tensor values = spectrum(4);
  values[2] = 3.8;
  const Eigenpair before = largest_eigenpair(operator_of(vectors, values), probe(0), {60, 1e-6});
  EXPECT_NEAR(std::abs(before.second.dot(vectors.select(1, 2)).item<double>()), 1, 1e-2);
  values[2] = 4.4;
  const LinearOperator after = operator_of(vectors, values);
  EXPECT_NEAR(largest_eigenpair(after, before.vector + 0.3 * before.second, {5, 1e-2}).value, 4.4, 0.01);
  EXPECT_NEAR(largest_eigenpair(after, before.vector, {5, 1e-2}).value, 4, 0.01);
  EXPECT_EQ(largest_eigenpair(after, before.vector, {1, 0}).second.norm().item<double>(), 0);
}

TEST(LargestEigenpair, ARandomShareLetsAnotherVectorTakeOver) {
  const Tensor vectors = eigenvectors();
  Tensor values = spectrum(4);
  const Tensor old_vector = vectors.select(1, 0).contiguous();
  values[2] = 6;  // an eigenvalue of an orthogonal vector is now the largest
  const LinearOperator multiply = operator_of(vectors, values);
  Tensor mixed = old_vector, pure = old_vector;
  double found = 0;
  for (int64_t t = 0; t < 4; ++t) {
    const Eigenpair pair = largest_eigenpair(multiply, mixed + 0.1 * probe(t), {5, 1e-2});
    mixed = pair.vector;
    found = pair.value;
  }
  EXPECT_NEAR(found, 6, 0.05);
  EXPECT_NEAR(largest_eigenpair(multiply, pure, {5, 1e-2}).value, 4, 1e-9);
}

}  // namespace
}  // namespace plumb
