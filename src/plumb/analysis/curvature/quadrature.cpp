#include "plumb/analysis/curvature/quadrature.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "plumb/analysis/statistics.h"
#include "plumb/base/error.h"

namespace plumb {
namespace {

constexpr double kReach = 5;  // of the grid beyond the extremes, in σ
constexpr double kPointsPerSigma = 2;
constexpr double kFewestPoints = 400;
constexpr double kMostPoints = 4000;

double gaussian_mixture(const Ritz& probe, double x, double sigma) {
  double sum = 0;
  for (size_t i = 0; i < probe.values.size(); ++i) {
    const double z = (x - probe.values[i]) / sigma;
    if (std::abs(z) < 40) sum += probe.weights[i] * std::exp(-0.5 * z * z);
  }
  return sum / (sigma * std::sqrt(2 * M_PI));
}

std::pair<double, double> extremes(const std::vector<Ritz>& probes) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const Ritz& probe : probes) {
    low = std::min(low, probe.values.front());
    high = std::max(high, probe.values.back());
  }
  return {low, high};
}

}  // namespace

Estimate mean_with_error(const std::vector<double>& values) {
  Estimate estimate{mean_of(values), std::nullopt};
  if (values.size() > 1) estimate.error = std::sqrt(variance_of(values) / static_cast<double>(values.size()));
  return estimate;
}

Estimate spectral_mean(const std::vector<Ritz>& probes, const std::function<double(double)>& f) {
  std::vector<double> values;
  for (const Ritz& probe : probes) {
    double sum = 0;
    for (size_t i = 0; i < probe.values.size(); ++i) sum += probe.weights[i] * f(probe.values[i]);
    values.push_back(sum);
  }
  return mean_with_error(values);
}

Density smoothed_density(const std::vector<Ritz>& probes, double sigma) {
  if (probes.empty()) throw Error("a density needs at least one probe");
  const auto [low, high] = extremes(probes);
  const double range = high - low;
  const auto probe_count = static_cast<int64_t>(probes.size());
  const double reach = probe_count > 1 ? student_t_quantile(0.975, probe_count - 1) : 0;  // in standard errors
  Density density;
  density.sigma = sigma > 0 ? sigma : range > 0 ? range / 100 : 1e-2 * std::max(1e-300, std::abs(low));
  const double width = range + 2 * kReach * density.sigma;
  const double points = std::clamp(std::ceil(kPointsPerSigma * width / density.sigma), kFewestPoints, kMostPoints);
  for (double i = 0; i <= points; ++i) {
    const double x = low - kReach * density.sigma + width * i / points;
    std::vector<double> values;
    for (const Ritz& probe : probes) values.push_back(gaussian_mixture(probe, x, density.sigma));
    const Estimate y = mean_with_error(values);
    density.x.push_back(x);
    density.y.push_back(y.mean);
    if (!y.error) continue;
    density.low.push_back(std::max(0.0, y.mean - reach * *y.error));
    density.high.push_back(y.mean + reach * *y.error);
  }
  return density;
}

double spectral_quantile(const std::vector<Ritz>& probes, double share) {
  if (probes.empty()) throw Error("a quantile needs at least one probe");
  std::vector<std::pair<double, double>> nodes;
  for (const Ritz& probe : probes) {
    for (size_t i = 0; i < probe.values.size(); ++i) {
      nodes.emplace_back(probe.values[i], probe.weights[i] / static_cast<double>(probes.size()));
    }
  }
  std::sort(nodes.begin(), nodes.end());
  double below = 0;  // the mass below the current node
  double previous_middle = 0;
  double previous_value = nodes.front().first;
  for (const auto& [value, weight] : nodes) {
    const double middle = below + weight / 2;
    if (middle >= share) {
      const double gap = middle - previous_middle;
      return below == 0 || gap <= 0 ? value
                                    : previous_value + (value - previous_value) * (share - previous_middle) / gap;
    }
    below += weight;
    previous_middle = middle;
    previous_value = value;
  }
  return nodes.back().first;
}

Ritz as_probe(const std::vector<double>& eigenvalues) {
  const size_t count = eigenvalues.size();
  return {eigenvalues, std::vector<double>(count, 1.0 / static_cast<double>(count)), std::vector<double>(count, 0.0)};
}

}  // namespace plumb
