// The Lanczos process with full re-orthogonalization, for any symmetric operator.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "plumb/analysis/curvature/basis.h"
#include "plumb/ops/torch.h"

namespace plumb {

/// v (n) → A·v (n) with A symmetric.
using LinearOperator = std::function<Tensor(const Tensor&)>;

/// T = VᵀAV after m steps: alpha (m) is its diagonal; beta (m) couples step j with j + 1, its last element being the
/// norm of what remains outside of the basis.
struct Tridiagonal {
  std::vector<double> alpha;
  std::vector<double> beta;
  /// ‖VᵀAV − T‖_F above the diagonal: 0 but for rounding in the products, or for an A that is not symmetric. No Ritz
  /// value is further than this from where it belongs (Weyl).
  double rounding = 0;
  /// The basis spans an invariant subspace: nothing remains outside, and the Ritz values are eigenvalues.
  bool exhausted = false;
};

struct LanczosOptions {
  int64_t steps = 80;
  /// Stop when both extreme Ritz values have residuals below this share of the largest magnitude; 0: take every step.
  double tolerance = 0;
  /// Keep the basis in a file in this directory; empty: in memory, n·steps elements.
  std::filesystem::path basis_directory;
  /// Told after each step how many are done and what is known.
  std::function<void(const Tridiagonal&)> on_step;
};

/// One Lanczos process, step by step, for a caller who forms several products at a time:
/// while (!process.done()) process.advance(A·process.direction()).
class Lanczos {
 public:
  /// From the start vector (n), float32 or float64, which need not be normalized. Throws Error if it is zero.
  Lanczos(const Tensor& start, LanczosOptions options);

  [[nodiscard]] bool done() const { return done_; }
  /// The vector (n) whose product is wanted next.
  [[nodiscard]] const Tensor& direction() const { return basis_[basis_.count() - 1]; }
  /// Takes that product. Throws Error if it is not finite.
  void advance(const Tensor& product);
  [[nodiscard]] const Tridiagonal& result() const { return result_; }

 private:
  LanczosOptions options_;
  int64_t steps_;
  Basis basis_;
  Tridiagonal result_;
  double scale_ = 0;  // of A, as far as seen
  bool done_ = false;
};

/// A·V = V·T + β_m·v_{m+1}·e_mᵀ from the start vector: the whole process. α and β are float64 in any case.
Tridiagonal lanczos(const LinearOperator& multiply, const Tensor& start, const LanczosOptions& options);

/// What T says of A. T = S·diag(θ)·Sᵀ:
/// values θ_i (ascending); weights s_{1i}², which sum to 1: with the values, the Gauss quadrature of vᵀf(A)v, v the
/// start vector; residuals ‖A·y_i − θ_i·y_i‖ = |β_m·s_{mi}|: an eigenvalue of A lies at most so far from θ_i.
struct Ritz {
  std::vector<double> values, weights, residuals;
};
Ritz ritz(const Tridiagonal& tridiagonal);

/// A start vector with independent elements ±1/√n, a function of (seed, index) alone, whatever the device. For all unit
/// vectors of independent elements E vvᵀ = I/n, so that n·vᵀf(A)v is an unbiased estimate of tr f(A); signs give the
/// trace the smallest variance (Hutchinson 1990).
Tensor random_probe(int64_t n, const at::TensorOptions& type, uint64_t seed, int64_t index);

}  // namespace plumb
