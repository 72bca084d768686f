// All eigenvalues of an operator, from its products with all unit vectors; for small models.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plumb/analysis/curvature/lanczos.h"

namespace plumb {

/// The eigenvalues of the matrix's symmetric part.
struct DenseSpectrum {
  std::vector<double> eigenvalues;  // ascending
  double asymmetry = 0;             // max |A_ij − A_ji|
  /// ‖(A − Aᵀ)/2‖_F: every eigenvalue of the symmetric part is within this distance of one of A (Kahan 1975, "Spectra
  /// of nearly Hermitian matrices"). Of an operator that should be symmetric, it shows the antisymmetric part of the
  /// rounding errors; a symmetric error does not show.
  double error = 0;
};

/// Takes n products with unit vectors of the given element type and device, O(n³) work, and memory for several (n, n)
/// float64 matrices. Throws Error above n = 16,384, and if a product is not finite.
DenseSpectrum dense_spectrum(const LinearOperator& multiply, int64_t n, const at::TensorOptions& type,
                             const std::function<void(int64_t)>& on_product = {});

}  // namespace plumb
