#include "plumb/analysis/curvature/largest.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "plumb/base/error.h"

namespace plumb {
namespace {

/// The largest Ritz value, its residual, and the coefficients, in the basis, of its vector and of the second one.
struct LargestRitz {
  double value = 0;
  double residual = 0;
  Eigen::VectorXd coefficients, second;
};

LargestRitz largest_ritz(const Tridiagonal& tridiagonal) {
  const auto m = static_cast<Eigen::Index>(tridiagonal.alpha.size());
  const Eigen::Map<const Eigen::VectorXd> diagonal(tridiagonal.alpha.data(), m);
  const Eigen::Map<const Eigen::VectorXd> coupling(tridiagonal.beta.data(), m - 1);
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver;
  solver.computeFromTridiagonal(diagonal, coupling, Eigen::ComputeEigenvectors);
  if (solver.info() != Eigen::Success) throw Error("cannot compute the eigenvalues of the tridiagonal matrix");
  LargestRitz found;
  found.coefficients = solver.eigenvectors().col(m - 1);
  found.second = Eigen::VectorXd::Zero(m);
  if (m > 1) found.second = solver.eigenvectors().col(m - 2);
  found.value = solver.eigenvalues()(m - 1);
  found.residual = std::abs(tridiagonal.beta.back() * found.coefficients(m - 1)) + tridiagonal.rounding;
  return found;
}

}  // namespace

Eigenpair largest_eigenpair(const LinearOperator& multiply, const Tensor& start, const LargestOptions& options) {
  LanczosOptions lanczos;
  lanczos.steps = std::max<int64_t>(options.products, 1);
  Lanczos process(start, lanczos);
  LargestRitz found;
  while (!process.done()) {
    process.advance(multiply(process.direction()));
    found = largest_ritz(process.result());
    if (options.tolerance > 0 && found.residual <= options.tolerance * std::abs(found.value)) break;
  }
  Eigenpair pair{found.value, found.residual, at::zeros_like(start), at::zeros_like(start),
                 std::ssize(process.result().alpha)};
  for (int64_t i = 0; i < pair.products; ++i) {
    pair.vector.add_(process.basis()[i], found.coefficients(i));
    pair.second.add_(process.basis()[i], found.second(i));
  }
  return pair;
}

}  // namespace plumb
