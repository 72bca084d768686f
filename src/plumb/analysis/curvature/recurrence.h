// The recurrence of the Lanczos process over plain numbers, and what its matrix tells; the vectors are elsewhere.
#pragma once

#include <cstdint>
#include <vector>

namespace plumb {

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

/// What T = S·diag(θ)·Sᵀ tells about A: values θ_i (ascending); weights s_{1i}², which sum to 1 and with the values
/// form the Gauss quadrature of vᵀf(A)v for the start vector v; residuals ‖A·y_i − θ_i·y_i‖ = |β_m·s_{mi}|: A has an
/// eigenvalue within this distance of θ_i.
struct Ritz {
  std::vector<double> values, weights, residuals;
};
Ritz ritz(const Tridiagonal& tridiagonal);

/// One process, whose caller has the basis v_1, v_2, …: while (!done()) it multiplies the last vector, orthogonalizes
/// the product against all, and calls advance(); unless done(), the next vector is the remainder, normalized.
class LanczosRecurrence {
 public:
  /// Of vectors of n elements whose type has this epsilon, for at most `steps` steps. `tolerance`: it also ends when
  /// the residuals of both extreme Ritz values are below this fraction of the largest magnitude; 0: never.
  LanczosRecurrence(int64_t n, int64_t steps, double tolerance, double epsilon);

  [[nodiscard]] bool done() const { return done_; }
  /// At most.
  [[nodiscard]] int64_t steps() const { return steps_; }
  /// `coefficients`: the components of the product along the vectors so far; `norm`: of its remainder. Throws Error if
  /// they are not finite.
  void advance(const std::vector<double>& coefficients, double norm);
  [[nodiscard]] const Tridiagonal& result() const { return result_; }

 private:
  int64_t size_;  // n
  int64_t steps_;
  double tolerance_;
  double epsilon_;
  Tridiagonal result_;
  double scale_ = 0;  // of A, as estimated so far
  bool done_;
};

}  // namespace plumb
