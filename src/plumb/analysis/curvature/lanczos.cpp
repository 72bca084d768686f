#include "plumb/analysis/curvature/lanczos.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plumb/base/error.h"
#include "plumb/ops/dispatch.h"
#include "plumb/ops/gram_schmidt.h"

namespace plumb {
namespace {

double whole(double part, const SumOfParts& sum) { return sum ? sum({part}).front() : part; }

LanczosRecurrence recurrence_from(const Tensor& start, const LanczosOptions& options) {
  const double epsilon = start.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                            : std::numeric_limits<float>::epsilon();
  const int64_t size = std::llround(whole(static_cast<double>(start.numel()), options.sum_of_parts));
  return {size, options.steps, options.tolerance, epsilon};
}

}  // namespace

Lanczos::Lanczos(const Tensor& start, const LanczosOptions& options)
    : recurrence_(recurrence_from(start, options)),
      basis_(recurrence_.steps(), start.numel(), start.options(), options.basis_directory, options.sum_of_parts) {
  Tensor vector = start.contiguous();
  const std::vector<double> square = ops::gram_schmidt({}, {}, false, vector);  // in float64, as vectors are long
  const double length = std::sqrt(whole(square.back(), options.sum_of_parts));
  if (!(length > 0)) throw Error("Lanczos cannot start from a zero vector");
  if (!done()) basis_.append(start, 1 / length);
}

void Lanczos::advance(const Tensor& product) {
  Tensor w = product.contiguous();
  if (w.is_alias_of(direction())) w = w.clone();
  const Basis::Projection projection = basis_.orthogonalize(w);
  recurrence_.advance(projection.coefficients, projection.norm);
  if (!done()) basis_.append(w, 1 / projection.norm);
}

Tridiagonal lanczos(const LinearOperator& multiply, const Tensor& start, const LanczosOptions& options) {
  Lanczos process(start, options);
  while (!process.done()) process.advance(multiply(process.direction()));
  return process.result();
}

Tensor random_probe(int64_t n, const at::TensorOptions& type, uint64_t seed, int64_t index) {
  return RandomProbe(n, type, seed, index).next(n);
}

Tensor RandomProbe::next(int64_t count) {
  const Tensor elements = at::empty({count}, type_.device(at::kCPU));
  ops::dispatch(elements, [&]<typename T>() { signs_.write(elements.data_ptr<T>(), count); });
  return elements.to(type_.device());
}

}  // namespace plumb
