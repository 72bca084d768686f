// Stochastic Lanczos quadrature: the distribution of eigenvalues from a few start vectors (arXiv 1901.10159).
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "plumb/analysis/curvature/lanczos.h"

namespace plumb {

/// A mean over probes, with its standard error; none from a single probe.
struct Estimate {
  double mean = 0;
  std::optional<double> error;
};

/// The mean of independent values and their standard deviation/√count.
Estimate mean_with_error(const std::vector<double>& values);

/// Σ_i w_i·f(θ_i), the mean over the probes: estimates tr f(A)/n.
Estimate spectral_mean(const std::vector<Ritz>& probes, const std::function<double(double)>& f);

/// Density of the eigenvalues, smoothed by a Gaussian kernel: y(x) = Σ_i w_i·N(x; θ_i, σ²), the mean over the probes.
struct Density {
  double sigma = 0;
  std::vector<double> x, y;
  std::vector<double> low,
      high;  // two standard errors of the mean below and above, not below 0; empty from a single probe
};

/// On a grid that reaches five σ beyond the extremes, two points or more a σ. σ ≤ 0 chooses a hundredth of the range.
Density smoothed_density(const std::vector<Ritz>& probes, double sigma);

/// Where the distribution function of the eigenvalues reaches `share`: the mean distribution of the probes, linear
/// between the middles of its steps.
double spectral_quantile(const std::vector<Ritz>& probes, double share);

/// Exact eigenvalues as one probe of equal weights.
Ritz as_probe(const std::vector<double>& eigenvalues);

}  // namespace plumb
