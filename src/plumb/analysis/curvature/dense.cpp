#include "plumb/analysis/curvature/dense.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

constexpr int64_t kLargest = 16384;

}  // namespace

DenseSpectrum dense_spectrum(const LinearOperator& multiply, int64_t n, const at::TensorOptions& type,
                             const std::function<void(int64_t)>& on_product) {
  if (n > kLargest) {
    throw Error(fmt::format("the dense Hessian of {} parameters is too large", with_thousands(n)),
                fmt::format("the limit is {} parameters; omit --dense to use Lanczos", with_thousands(kLargest)));
  }
  const Tensor matrix = at::empty({n, n}, at::kDouble);
  const Tensor unit = at::zeros({n}, type);
  for (int64_t j = 0; j < n; ++j) {
    unit[j].fill_(1);
    matrix[j].copy_(multiply(unit));
    unit[j].fill_(0);
    if (on_product) on_product(j + 1);
  }
  if (!matrix.isfinite().all().item<bool>()) {
    throw Error("the Hessian is not finite", "the loss or its derivatives overflow at these parameters");
  }
  DenseSpectrum spectrum;
  const Tensor difference = matrix - matrix.t();
  spectrum.asymmetry = difference.abs().max().item<double>();
  spectrum.error = 0.5 * difference.norm().item<double>();
  // LAPACK: six times as fast as Eigen compiled for generic machines.
  const Tensor values = at::linalg_eigvalsh(matrix - 0.5 * difference);
  spectrum.eigenvalues.assign(values.data_ptr<double>(), values.data_ptr<double>() + n);
  return spectrum;
}

}  // namespace plumb
