// The Lanczos process with full re-orthogonalization, for any symmetric operator.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "plumb/analysis/curvature/basis.h"
#include "plumb/base/random.h"
#include "plumb/ops/torch.h"

namespace plumb {

/// v (n) → A·v (n) with A symmetric.
using LinearOperator = std::function<Tensor(const Tensor&)>;

/// T = VᵀAV after m steps: alpha (m) is its diagonal; beta (m) couples steps j and j + 1, and its last element is the
/// norm of the remainder outside the basis.
struct Tridiagonal {
  std::vector<double> alpha;
  std::vector<double> beta;
  /// ‖VᵀAV − T‖_F, computed as √2 times the norm of the triangle above the diagonal, which is what the products show.
  /// Nonzero only through rounding in the products, or if A is not symmetric. It bounds the spectral norm, and with it
  /// the resulting error of every Ritz value (Weyl).
  double rounding = 0;
  /// Whether the basis spans an invariant subspace, so that the Ritz values are eigenvalues.
  bool exhausted = false;
};

struct LanczosOptions {
  int64_t steps = 80;
  /// Stop when the residuals of both extreme Ritz values are below this fraction of the largest magnitude; 0: never.
  double tolerance = 0;
  /// Keep the basis in a file in this directory; empty: in memory, n·steps elements.
  std::filesystem::path basis_directory;
  /// If several processes run Lanczos together, each with its part of every vector; all get the same results.
  SumOfParts sum_of_parts{};
  /// Called after each step with the number of steps and the results so far.
  std::function<void(const Tridiagonal&)> on_step;
};

/// One Lanczos process, step by step, for callers that compute several products at a time:
/// while (!process.done()) process.advance(A·process.direction()).
class Lanczos {
 public:
  /// Starts from the vector (n), or this process's part of it, float32 or float64, which need not be normalized. Throws
  /// Error if it is zero.
  Lanczos(const Tensor& start, LanczosOptions options);

  [[nodiscard]] bool done() const { return done_; }
  /// The vector (n) whose product is needed next.
  [[nodiscard]] const Tensor& direction() const { return basis_[basis_.count() - 1]; }
  /// Takes the product A·direction(). Throws Error if it is not finite.
  void advance(const Tensor& product);
  [[nodiscard]] const Tridiagonal& result() const { return result_; }
  /// The vectors v_1, v_2, … of the basis: result().alpha.size() of them, plus the next direction unless done().
  [[nodiscard]] const Basis& basis() const { return basis_; }

 private:
  LanczosOptions options_;
  int64_t size_;  // n
  int64_t steps_;
  Basis basis_;
  Tridiagonal result_;
  double scale_ = 0;  // of A, as estimated so far
  bool done_ = false;
};

/// Runs the whole process from the start vector: A·V = V·T + β_m·v_{m+1}·e_mᵀ. α and β are always float64.
Tridiagonal lanczos(const LinearOperator& multiply, const Tensor& start, const LanczosOptions& options);

/// What T = S·diag(θ)·Sᵀ tells about A: values θ_i (ascending); weights s_{1i}², which sum to 1 and with the values
/// form the Gauss quadrature of vᵀf(A)v for the start vector v; residuals ‖A·y_i − θ_i·y_i‖ = |β_m·s_{mi}|: A has an
/// eigenvalue within this distance of θ_i.
struct Ritz {
  std::vector<double> values, weights, residuals;
};
Ritz ritz(const Tridiagonal& tridiagonal);

/// The largest eigenvalue, and how far one may lie from it, by at most `steps` steps of Lanczos from the start vector:
/// they end as soon as that residual is a hundredth of the value.
std::pair<double, double> largest_eigenvalue(const LinearOperator& multiply, const Tensor& start, int64_t steps);

/// A start vector with independent elements ±1/√n, a function of (seed, index) only, on any device. For all unit
/// vectors with independent elements, E vvᵀ = I/n, so that n·vᵀf(A)v is an unbiased estimate of tr f(A); random signs
/// give the trace the smallest variance (Hutchinson 1990).
Tensor random_probe(int64_t n, const at::TensorOptions& type, uint64_t seed, int64_t index);

/// Its elements, one piece after another.
class RandomProbe {
 public:
  RandomProbe(int64_t n, const at::TensorOptions& type, uint64_t seed, int64_t index);
  /// The next `count` of them.
  Tensor next(int64_t count);

 private:
  at::TensorOptions type_;
  Random random_;
  double size_;  // of each
  int64_t drawn_ = 0;
  uint32_t bits_ = 0;  // the signs of the next 32 − drawn_ % 32
};

}  // namespace plumb
