// SOAP against algorithm 3 of its paper (arXiv 2409.11321), with the sorting of its authors' code: matrix products in
// loops, eigenvectors by Jacobi's method, orthogonal factors by Gram and Schmidt's.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "trajectory.h"

namespace plumb {
namespace {

using test::Numbers;
using test::Plain;

struct Matrix {
  size_t rows = 0, columns = 0;
  Numbers at;
  Matrix() = default;
  Matrix(size_t r, size_t c) : rows(r), columns(c), at(r * c) {}
  double& operator()(size_t r, size_t c) { return at[r * columns + c]; }
  double operator()(size_t r, size_t c) const { return at[r * columns + c]; }
};

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  for (size_t i = 0; i < a.rows; ++i)
    for (size_t j = 0; j < b.columns; ++j)
      for (size_t k = 0; k < a.columns; ++k) c(i, j) += a(i, k) * b(k, j);
  return c;
}
Matrix transposed(const Matrix& a) {
  Matrix b(a.columns, a.rows);
  for (size_t i = 0; i < a.rows; ++i)
    for (size_t j = 0; j < a.columns; ++j) b(j, i) = a(i, j);
  return b;
}
Matrix identity(size_t n) {
  Matrix one(n, n);
  for (size_t i = 0; i < n; ++i) one(i, i) = 1;
  return one;
}
void average(Matrix& mean, const Matrix& x, double beta) {
  for (size_t i = 0; i < x.at.size(); ++i) mean.at[i] = beta * mean.at[i] + (1 - beta) * x.at[i];
}

/// The eigenvectors of a symmetric matrix as columns, in order of decreasing eigenvalue.
Matrix eigenvectors(Matrix a) {
  const size_t n = a.rows;
  Matrix vectors = identity(n);
  for (int sweep = 0; sweep < 60; ++sweep) {
    for (size_t p = 0; p < n; ++p) {
      for (size_t q = p + 1; q < n; ++q) {
        const double angle = 0.5 * std::atan2(2 * a(p, q), a(q, q) - a(p, p));
        Matrix rotation = identity(n);
        rotation(p, p) = rotation(q, q) = std::cos(angle);
        rotation(p, q) = std::sin(angle);
        rotation(q, p) = -std::sin(angle);
        a = transposed(rotation) * a * rotation;
        vectors = vectors * rotation;
      }
    }
  }
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return a(i, i) > a(j, j); });
  Matrix sorted(n, n);
  for (size_t j = 0; j < n; ++j)
    for (size_t i = 0; i < n; ++i) sorted(i, j) = vectors(i, order[j]);
  return sorted;
}

Matrix orthogonal_factor(Matrix a) {
  for (size_t j = 0; j < a.columns; ++j) {
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t k = 0; k < j; ++k) {
        double product = 0;
        for (size_t i = 0; i < a.rows; ++i) product += a(i, j) * a(i, k);
        for (size_t i = 0; i < a.rows; ++i) a(i, j) -= product * a(i, k);
      }
    }
    double square = 0;
    for (size_t i = 0; i < a.rows; ++i) square += a(i, j) * a(i, j);
    for (size_t i = 0; i < a.rows; ++i) a(i, j) /= std::sqrt(square);
  }
  return a;
}

struct SoapConstants {
  double beta1 = 0.95, beta2 = 0.95, eps = 1e-8;
  int every = 10;
  size_t longest = 2048;
};

/// How often sorting the columns of a basis has changed their order.
int changed_orders = 0;

/// The test's matrices have linearly independent rows and columns, or a side that is not rotated: otherwise the
/// eigenvectors of the first gradient's null space are arbitrary.
class SoapLoops {
 public:
  explicit SoapLoops(const SoapConstants& given) : given_(given) {}

  void step(Matrix& w, const Matrix& g, double rate, double decay, int t) {
    const bool left = g.rows <= given_.longest, right = g.columns <= given_.longest;
    const Matrix ggt = g * transposed(g), gtg = transposed(g) * g;
    if (t == 1) {
      l_ = Matrix(g.rows, g.rows);
      r_ = Matrix(g.columns, g.columns);
      average(l_, ggt, given_.beta2);
      average(r_, gtg, given_.beta2);
      p_ = left ? eigenvectors(ggt) : identity(g.rows);
      q_ = right ? eigenvectors(gtg) : identity(g.columns);
      m_ = v_ = Matrix(g.rows, g.columns);
      return;
    }
    const int u = t - 1;
    const Matrix rotated = transposed(p_) * g * q_;
    average(m_, g, given_.beta1);
    Matrix n = transposed(p_) * m_ * q_;
    for (size_t i = 0; i < n.at.size(); ++i) {
      v_.at[i] = given_.beta2 * v_.at[i] + (1 - given_.beta2) * rotated.at[i] * rotated.at[i];
      n.at[i] /= 1 - std::pow(given_.beta1, u);
      n.at[i] /= std::sqrt(v_.at[i] / (1 - std::pow(given_.beta2, u))) + given_.eps;
    }
    const Matrix direction = p_ * n * transposed(q_);
    for (size_t i = 0; i < w.at.size(); ++i) w.at[i] -= rate * (direction.at[i] + decay * w.at[i]);
    average(l_, ggt, given_.beta2);
    average(r_, gtg, given_.beta2);
    if (u % given_.every != 0) return;
    if (left) {
      const auto order = by_estimate(l_, p_);
      Matrix v(v_.rows, v_.columns);
      for (size_t i = 0; i < v.rows; ++i)
        for (size_t j = 0; j < v.columns; ++j) v(i, j) = v_(order[i], j);
      v_ = v;
      p_ = orthogonal_factor(l_ * in_order(p_, order));
    }
    if (right) {
      const auto order = by_estimate(r_, q_);
      v_ = in_order(v_, order);
      q_ = orthogonal_factor(r_ * in_order(q_, order));
    }
  }

 private:
  /// The columns of a basis by decreasing xᵀ·mean·x.
  std::vector<size_t> by_estimate(const Matrix& mean, const Matrix& basis) {
    const Matrix estimate = transposed(basis) * mean * basis;
    std::vector<size_t> order(basis.columns);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return estimate(i, i) > estimate(j, j); });
    changed_orders += std::is_sorted(order.begin(), order.end()) ? 0 : 1;
    return order;
  }
  static Matrix in_order(const Matrix& a, const std::vector<size_t>& order) {
    Matrix b(a.rows, a.columns);
    for (size_t i = 0; i < a.rows; ++i)
      for (size_t j = 0; j < a.columns; ++j) b(i, j) = a(i, order[j]);
    return b;
  }

  SoapConstants given_;
  Matrix l_, r_, p_, q_, m_, v_;
};

test::PlainStep soap(const SoapConstants& given) {
  struct State {
    std::vector<SoapLoops> matrices;
    Numbers m, v;
  };
  return [=, states = std::vector<State>(4)](size_t i, Plain& p, const Numbers& g, double rate, double decay,
                                             int t) mutable {
    State& state = states[i];
    if (!p.matrix) {  // Adam
      state.m.resize(g.size());
      state.v.resize(g.size());
      for (size_t j = 0; j < g.size(); ++j) {
        state.m[j] = given.beta1 * state.m[j] + (1 - given.beta1) * g[j];
        state.v[j] = given.beta2 * state.v[j] + (1 - given.beta2) * g[j] * g[j];
        const double mean = state.m[j] / (1 - std::pow(given.beta1, t));
        p.w[j] -= rate * (mean / (std::sqrt(state.v[j] / (1 - std::pow(given.beta2, t))) + given.eps) + decay * p.w[j]);
      }
      return;
    }
    const size_t count = p.name == "qkv" ? 2 : 1;
    state.matrices.resize(count, SoapLoops(given));
    const auto rows = static_cast<size_t>(p.rows) / count, columns = static_cast<size_t>(p.columns);
    for (size_t k = 0; k < count; ++k) {
      Matrix w(rows, columns), gradient(rows, columns);
      const auto begin = static_cast<std::ptrdiff_t>(k * rows * columns);
      std::copy_n(p.w.begin() + begin, rows * columns, w.at.begin());
      std::copy_n(g.begin() + begin, rows * columns, gradient.at.begin());
      state.matrices[k].step(w, gradient, rate, decay, t);
      std::copy(w.at.begin(), w.at.end(), p.w.begin() + begin);
    }
  };
}

TEST(Soap, FollowsItsPaper) {
  // A side of 5 is not rotated: see SoapLoops.
  test::expect_steps("soap", "[train.soap]\nlongest_side = 4\nevery = 3\n", soap({.every = 3, .longest = 4}));
  test::expect_steps("soap", "[train.soap]\nlongest_side = 4\nevery = 1\nbeta1 = 0.8\nbeta2 = 0.9\neps = 0.001\n",
                     soap({.beta1 = 0.8, .beta2 = 0.9, .eps = 0.001, .every = 1, .longest = 4}));
  EXPECT_GT(changed_orders, 0);
}

TEST(Soap, IsAdamWhereNothingIsRotated) {
  Parameters one(at::kDouble), other(at::kDouble);
  for (Parameters* parameters : {&one, &other}) {
    parameters->add("w", {6, 5}, Role::weight);
    parameters->allocate();
    parameters->flat().copy_(testing::random_tensor({30}, 1));
  }
  const auto soap = make_optimizer("soap", one, test::options("[train.soap]\nlongest_side = 4\n"));
  const auto adam =
      make_optimizer("adam", other, test::options("[train.adam]\nbeta1 = 0.95\nbeta2 = 0.95\neps = 1e-8\n"));
  for (uint64_t t = 1; t <= 5; ++t) {
    soap->step({testing::random_tensor({6, 5}, t)}, 0.1);
    adam->step({testing::random_tensor({6, 5}, t)}, 0.1);
  }
  EXPECT_TRUE(at::equal(one.flat(), other.flat()));
}

TEST(Soap, NamesTheRotationsOfEachMatrix) {
  Parameters parameters(at::kFloat);
  parameters.add_stacked("qkv", {6, 3}, {3, 3}, Role::stacked_qkv);
  parameters.add("table", {50, 3}, Role::embedding);
  parameters.add("bias", {3}, Role::bias);
  parameters.allocate();
  std::vector<std::string> names;
  for (const auto& [name, tensor] :
       make_optimizer("soap", parameters, test::options("[train.soap]\nlongest_side = 10\n"))->state())
    names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"rotation_step", "m.qkv", "m.table", "v.qkv", "v.table", "left.0.qkv",
                                             "left_basis.0.qkv", "right.0.qkv", "right_basis.0.qkv", "left.1.qkv",
                                             "left_basis.1.qkv", "right.1.qkv", "right_basis.1.qkv", "right.table",
                                             "right_basis.table", "step", "m.bias", "v.bias"}));
}

}  // namespace
}  // namespace plumb
