// What Lanczos processes, or all eigenvalues, tell about the spectrum of a symmetric matrix; plain numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/analysis/curvature/quadrature.h"
#include "plumb/analysis/curvature/recurrence.h"

namespace plumb {

/// A value and its error: there is an eigenvalue within this distance.
struct Extreme {
  double value = 0;
  double error = 0;
};

/// The results of Lanczos from one start vector.
struct ProbeSpectrum {
  int64_t steps = 0;       // taken
  bool exhausted = false;  // see Tridiagonal
  double rounding = 0;
  Ritz ritz;
};

/// The eigenvalues of one symmetric matrix.
struct Spectrum {
  Extreme max, min;  // error: Ritz residual and rounding; dense: the matrix's asymmetry
  Estimate trace, frobenius;
  double zero_band = 0;                              // a thousandth of the largest magnitude
  Estimate negative, positive;                       // fractions of the eigenvalues below −zero_band and above it
  std::vector<std::pair<double, double>> quantiles;  // (share, value)
  Density density;
  std::vector<ProbeSpectrum> probes;  // Lanczos only
  std::vector<double> eigenvalues;    // dense: all, ascending
  std::optional<double> asymmetry;    // dense: the largest |H_ij − H_ji|
};

/// From the Lanczos results of some probes for a matrix of n rows. `sigma`: see smoothed_density().
Spectrum spectrum_of(const std::vector<Tridiagonal>& tridiagonals, int64_t n, double sigma);

/// From all eigenvalues of a matrix's symmetric part, ascending. `error`: see DenseSpectrum.
Spectrum spectrum_of(const std::vector<double>& eigenvalues, double error, double sigma);

/// "λ_max 1.25, λ_min -0.5", as known so far.
std::string extremes_so_far(const Tridiagonal& tridiagonal);

/// Throws Error if a matrix of n rows is too large for all its eigenvalues.
void require_dense_size(int64_t n);

}  // namespace plumb
