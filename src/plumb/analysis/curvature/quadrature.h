// Stochastic Lanczos quadrature: the distribution of eigenvalues from a few start vectors (arXiv 1901.10159).
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "plumb/analysis/curvature/recurrence.h"

namespace plumb {

/// A mean over probes with its standard error, which is absent for a single probe.
struct Estimate {
  double mean = 0;
  std::optional<double> error;
};

/// The mean of independent values and their standard deviation/√count.
Estimate mean_with_error(const std::vector<double>& values);

/// Σ_i w_i·f(θ_i), the mean over the probes: estimates tr f(A)/n.
Estimate spectral_mean(const std::vector<Ritz>& probes, const std::function<double(double)>& f);

/// Density of the eigenvalues, smoothed with a Gaussian kernel: y(x) = Σ_i w_i·N(x; θ_i, σ²), averaged over the probes.
struct Density {
  double sigma = 0;
  std::vector<double> x, y;
  /// The ends of the 95% confidence interval by Student's t over the probes, the lower one at least 0; empty for a
  /// single probe.
  std::vector<double> low, high;
};

/// On a grid that extends five σ beyond the extremes, with two points per σ but at least 400 intervals and at most
/// 4,000. σ ≤ 0: a hundredth of the range.
Density smoothed_density(const std::vector<Ritz>& probes, double sigma);

/// The value at which the distribution function of the eigenvalues reaches `share`: the mean distribution of the
/// probes, interpolated linearly between the midpoints of its steps.
double spectral_quantile(const std::vector<Ritz>& probes, double share);

/// Exact eigenvalues as one probe with equal weights.
Ritz as_probe(const std::vector<double>& eigenvalues);

}  // namespace plumb
