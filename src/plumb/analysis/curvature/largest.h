// The largest eigenvalue of an operator that changes little from one call to the next.
#pragma once

#include <cstdint>

#include "plumb/analysis/curvature/lanczos.h"

namespace plumb {

struct LargestOptions {
  int64_t products = 10;    // at most
  double tolerance = 0.01;  // stops once the residual is below this fraction of the eigenvalue's magnitude; 0: never
};

/// A Ritz pair (θ, y) of a symmetric A with ‖y‖ = 1.
struct Eigenpair {
  double value = 0;     // θ ≤ λ_max, up to rounding
  double residual = 0;  // ‖A·y − θ·y‖ and rounding: A has an eigenvalue within this distance of θ
  Tensor vector;        // y, (n)
  Tensor second;        // the Ritz vector of the next largest value, (n); zero after a single product
  int64_t products = 0;
};

/// The pair with the largest value in the Krylov space of `start`, (n), by the Lanczos process. If `start` is close to
/// the eigenvector, as after a small change of A, a few products suffice: the error of θ is of the order of the square
/// of the angle between them. A start orthogonal to the eigenvector never finds it: to an old eigenvector, add some of
/// `second`, whose eigenvalue may have overtaken, and of a random vector. Throws Error on a zero start, and on a
/// product that is not finite.
Eigenpair largest_eigenpair(const LinearOperator& multiply, const Tensor& start, const LargestOptions& options);

}  // namespace plumb
