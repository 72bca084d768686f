#include "plumb/analysis/curvature/recurrence.h"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "plumb/base/error.h"

namespace plumb {
namespace {

constexpr size_t kStepsBetweenChecks = 5;

bool converged(const Tridiagonal& tridiagonal, double tolerance) {
  const Ritz found = ritz(tridiagonal);
  const double largest = std::max(std::abs(found.values.front()), std::abs(found.values.back()));
  return std::max(found.residuals.front(), found.residuals.back()) <= tolerance * largest;
}

/// Squared distance of the last column and row of VᵀAV from those of T; the row is assumed equal to the column.
double deviation(const std::vector<double>& column, const std::vector<double>& beta) {
  double sum = 0;
  for (size_t k = 0; k + 1 < column.size(); ++k) {
    const double expected = k + 2 == column.size() ? beta.back() : 0;
    sum += 2 * (column[k] - expected) * (column[k] - expected);
  }
  return sum;
}

}  // namespace

LanczosRecurrence::LanczosRecurrence(int64_t n, int64_t steps, double tolerance, double epsilon)
    : size_(n), steps_(std::min(steps, n)), tolerance_(tolerance), epsilon_(epsilon), done_(steps_ < 1) {}

void LanczosRecurrence::advance(const std::vector<double>& coefficients, double norm) {
  const double alpha = coefficients.back();
  if (!std::isfinite(alpha) || !std::isfinite(norm)) {
    throw Error(fmt::format("the product of Lanczos step {} is not finite", coefficients.size()),
                "the loss or its derivatives overflow at these parameters");
  }
  result_.rounding = std::hypot(result_.rounding, std::sqrt(deviation(coefficients, result_.beta)));
  result_.alpha.push_back(alpha);
  result_.beta.push_back(norm);
  scale_ = std::max(scale_, std::abs(alpha) + norm);
  const int64_t count = std::ssize(result_.alpha);
  // The remainder is rounding error; the next direction would be noise.
  result_.exhausted = count == size_ || norm <= 100 * epsilon_ * scale_;
  const bool check = tolerance_ > 0 && result_.alpha.size() % kStepsBetweenChecks == 0;
  done_ = result_.exhausted || (check && converged(result_, tolerance_)) || count == steps_;
}

Ritz ritz(const Tridiagonal& tridiagonal) {
  const auto m = static_cast<Eigen::Index>(tridiagonal.alpha.size());
  const Eigen::Map<const Eigen::VectorXd> diagonal(tridiagonal.alpha.data(), m);
  const Eigen::Map<const Eigen::VectorXd> coupling(tridiagonal.beta.data(), m - 1);
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver;
  solver.computeFromTridiagonal(diagonal, coupling, Eigen::ComputeEigenvectors);
  if (solver.info() != Eigen::Success) throw Error("cannot compute the eigenvalues of the tridiagonal matrix");
  Ritz found;
  for (Eigen::Index i = 0; i < m; ++i) {
    const double first = solver.eigenvectors()(0, i);
    found.values.push_back(solver.eigenvalues()(i));
    found.weights.push_back(first * first);
    found.residuals.push_back(std::abs(tridiagonal.beta.back() * solver.eigenvectors()(m - 1, i)));
  }
  return found;
}

}  // namespace plumb
