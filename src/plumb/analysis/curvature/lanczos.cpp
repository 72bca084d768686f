#include "plumb/analysis/curvature/lanczos.h"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <limits>

#include "plumb/base/error.h"
#include "plumb/base/random.h"
#include "plumb/ops/dispatch.h"
#include "plumb/ops/gram_schmidt.h"

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

double whole(double part, const SumOfParts& sum) { return sum ? sum({part}).front() : part; }

}  // namespace

Lanczos::Lanczos(const Tensor& start, LanczosOptions options)
    : options_(std::move(options)),
      size_(std::llround(whole(static_cast<double>(start.numel()), options_.sum_of_parts))),
      steps_(std::min(options_.steps, size_)),
      basis_(steps_, start.numel(), start.options(), options_.basis_directory, options_.sum_of_parts),
      done_(steps_ < 1) {
  Tensor vector = start.contiguous();
  const std::vector<double> square = ops::gram_schmidt({}, {}, false, vector);  // in float64, as vectors are long
  const double length = std::sqrt(whole(square.back(), options_.sum_of_parts));
  if (!(length > 0)) throw Error("Lanczos cannot start from a zero vector");
  if (!done_) basis_.append(start, 1 / length);
}

void Lanczos::advance(const Tensor& product) {
  const double epsilon = product.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                              : std::numeric_limits<float>::epsilon();
  Tensor w = product.contiguous();
  if (w.is_alias_of(direction())) w = w.clone();
  const Basis::Projection projection = basis_.orthogonalize(w);
  const double alpha = projection.coefficients.back();
  if (!std::isfinite(alpha) || !std::isfinite(projection.norm)) {
    throw Error(fmt::format("the product of Lanczos step {} is not finite", basis_.count()),
                "the loss or its derivatives overflow at these parameters");
  }
  result_.rounding = std::hypot(result_.rounding, std::sqrt(deviation(projection.coefficients, result_.beta)));
  result_.alpha.push_back(alpha);
  result_.beta.push_back(projection.norm);
  scale_ = std::max(scale_, std::abs(alpha) + projection.norm);
  // The remainder is rounding error; the next direction would be noise.
  result_.exhausted = basis_.count() == size_ || projection.norm <= 100 * epsilon * scale_;
  if (options_.on_step) options_.on_step(result_);
  const bool check = options_.tolerance > 0 && result_.alpha.size() % kStepsBetweenChecks == 0;
  done_ = result_.exhausted || (check && converged(result_, options_.tolerance)) || basis_.count() == steps_;
  if (!done_) basis_.append(w, 1 / projection.norm);
}

Tridiagonal lanczos(const LinearOperator& multiply, const Tensor& start, const LanczosOptions& options) {
  Lanczos process(start, options);
  while (!process.done()) process.advance(multiply(process.direction()));
  return process.result();
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

Tensor random_probe(int64_t n, const at::TensorOptions& type, uint64_t seed, int64_t index) {
  return RandomProbe(n, type, seed, index).next(n);
}

RandomProbe::RandomProbe(int64_t n, const at::TensorOptions& type, uint64_t seed, int64_t index)
    : type_(type),
      random_(seed, stream_of("curvature") + static_cast<uint64_t>(index)),
      size_(1 / std::sqrt(static_cast<double>(n))) {}

Tensor RandomProbe::next(int64_t count) {
  const Tensor elements = at::empty({count}, type_.device(at::kCPU));
  ops::dispatch(elements, [&]<typename T>() {
    T* out = elements.data_ptr<T>();
    const T size = static_cast<T>(size_);
    for (int64_t i = 0; i < count; ++i, bits_ >>= 1) {
      if (drawn_++ % 32 == 0) bits_ = random_.next();
      out[i] = (bits_ & 1) != 0 ? size : -size;
    }
  });
  return elements.to(type_.device());
}

std::pair<double, double> largest_eigenvalue(const LinearOperator& multiply, const Tensor& start, int64_t steps) {
  constexpr double kTolerance = 0.01;
  Lanczos process(start, {.steps = steps});
  Ritz found;
  do {
    process.advance(multiply(process.direction()));
    found = ritz(process.result());
  } while (!process.done() && found.residuals.back() > kTolerance * std::abs(found.values.back()));
  return {found.values.back(), found.residuals.back()};
}

}  // namespace plumb
