#include "plumb/analysis/curvature/spectrum_estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "plumb/base/error.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

constexpr int64_t kLargestDense = 16384;

/// Eigenvalues below this fraction of the largest magnitude count as zero.
constexpr double kZeroBand = 1e-3;

/// The extreme Ritz value over all probes: `sign` is +1 for the largest, −1 for the smallest.
Extreme extreme_of(const std::vector<ProbeSpectrum>& probes, double sign) {
  const auto extreme = [sign](const ProbeSpectrum& probe) {
    const size_t place = sign > 0 ? probe.ritz.values.size() - 1 : 0;
    return Extreme{probe.ritz.values[place], probe.ritz.residuals[place] + probe.rounding};
  };
  Extreme best = extreme(probes.front());
  for (const ProbeSpectrum& probe : probes) {
    if (const Extreme other = extreme(probe); sign * other.value > sign * best.value) best = other;
  }
  return best;
}

/// The parts common to both methods, given the extremes; `exact` if the probes contain all eigenvalues.
void describe_distribution(Spectrum& spectrum, const std::vector<Ritz>& probes, double n, bool exact, double sigma) {
  const auto mean_of = [&](const std::function<double(double)>& f) {
    Estimate mean = spectral_mean(probes, f);
    if (exact) mean.error = 0;
    return mean;
  };
  const auto scaled = [](const Estimate& estimate, double factor) {
    return Estimate{factor * estimate.mean, estimate.error ? std::optional(factor * *estimate.error) : std::nullopt};
  };
  spectrum.trace = scaled(mean_of([](double x) { return x; }), n);
  const Estimate square = mean_of([](double x) { return x * x; });
  spectrum.frobenius.mean = std::sqrt(n * square.mean);
  // d√(n·s) = n/(2·√(n·s))·ds
  if (exact) spectrum.frobenius.error = 0;
  if (!exact && square.error && spectrum.frobenius.mean > 0)
    spectrum.frobenius.error = n * *square.error / (2 * spectrum.frobenius.mean);
  const double band = kZeroBand * std::max(std::abs(spectrum.max.value), std::abs(spectrum.min.value));
  spectrum.zero_band = band;
  spectrum.negative = mean_of([band](double x) { return x < -band ? 1.0 : 0.0; });
  spectrum.positive = mean_of([band](double x) { return x > band ? 1.0 : 0.0; });
  for (const double share : {0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99})
    spectrum.quantiles.emplace_back(share, spectral_quantile(probes, share));
  spectrum.density = smoothed_density(probes, sigma);
}

}  // namespace

std::string extremes_so_far(const Tridiagonal& tridiagonal) {
  const Ritz found = ritz(tridiagonal);
  return fmt::format("λ_max {:.4g}, λ_min {:.4g}", found.values.back(), found.values.front());
}

Spectrum spectrum_of(const std::vector<Tridiagonal>& tridiagonals, int64_t n, double sigma) {
  Spectrum spectrum;
  std::vector<Ritz> probes;
  for (const Tridiagonal& tridiagonal : tridiagonals) {
    probes.push_back(ritz(tridiagonal));
    spectrum.probes.push_back(
        {std::ssize(tridiagonal.alpha), tridiagonal.exhausted, tridiagonal.rounding, probes.back()});
  }
  spectrum.max = extreme_of(spectrum.probes, 1);
  spectrum.min = extreme_of(spectrum.probes, -1);
  describe_distribution(spectrum, probes, static_cast<double>(n), false, sigma);
  return spectrum;
}

Spectrum spectrum_of(const std::vector<double>& eigenvalues, double error, double sigma) {
  Spectrum spectrum;
  spectrum.max = {eigenvalues.back(), error};
  spectrum.min = {eigenvalues.front(), error};
  describe_distribution(spectrum, {as_probe(eigenvalues)}, static_cast<double>(eigenvalues.size()), true, sigma);
  spectrum.eigenvalues = eigenvalues;
  return spectrum;
}

void require_dense_size(int64_t n) {
  if (n <= kLargestDense) return;
  throw Error(fmt::format("the dense Hessian of {} parameters is too large", with_thousands(n)),
              fmt::format("the limit is {} parameters; omit --dense to use Lanczos", with_thousands(kLargestDense)));
}

}  // namespace plumb
