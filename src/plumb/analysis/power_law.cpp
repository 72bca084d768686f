#include "plumb/analysis/power_law.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "plumb/analysis/statistics.h"
#include "plumb/base/error.h"

namespace plumb {
namespace {

/// limit + amplitude · feature, and its sum of squared residuals.
struct LimitFit {
  double limit = 0;
  double amplitude = 0;
  double squares = 0;
};

double limit_fit_squares(const LimitFit& fit, const std::vector<double>& features, const std::vector<double>& losses) {
  double sum = 0;
  for (size_t i = 0; i < losses.size(); ++i) sum += std::pow(losses[i] - fit.limit - fit.amplitude * features[i], 2);
  return sum;
}

/// Least squares over limit ≥ 0 and amplitude ≥ 0. The problem is convex: if the unconstrained optimum violates a
/// condition, the constrained one satisfies it with equality.
LimitFit fit_features(const std::vector<double>& features, const std::vector<double>& losses) {
  const LineFit line = fit_line(features, losses);
  LimitFit fit{line.intercept, line.slope, 0};
  if (fit.amplitude < 0) {
    fit = {confidence_interval(losses).mean, 0, 0};
  } else if (fit.limit < 0) {
    double product = 0;
    double square = 0;
    for (size_t i = 0; i < losses.size(); ++i) {
      product += features[i] * losses[i];
      square += features[i] * features[i];
    }
    fit = {0, product / square, 0};
  }
  fit.squares = limit_fit_squares(fit, features, losses);
  return fit;
}

/// The fit for a given exponent, which is linear in the features (size/center)^−exponent.
class ExponentProfile {
 public:
  ExponentProfile(const std::vector<double>& sizes, const std::vector<double>& losses) : losses_(losses) {
    for (const double size : sizes) logs_.push_back(std::log(size));
    center_ = confidence_interval(logs_).mean;
  }

  [[nodiscard]] LimitFit at(double log_exponent) const {
    std::vector<double> features;
    for (const double log : logs_) features.push_back(std::exp(-std::exp(log_exponent) * (log - center_)));
    return fit_features(features, losses_);
  }
  [[nodiscard]] double squares(double log_exponent) const { return at(log_exponent).squares; }
  [[nodiscard]] double center() const { return center_; }

 private:
  const std::vector<double>& losses_;
  std::vector<double> logs_;
  double center_ = 0;
};

/// The log-exponent with the least squares: the best of a grid, refined between its neighbors by golden-section search.
double best_log_exponent(const ExponentProfile& profile) {
  constexpr int kGrid = 200;
  const double lowest = std::log(PowerLaw::kSmallestExponent);
  const double step = (std::log(PowerLaw::kLargestExponent) - lowest) / kGrid;
  int best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i <= kGrid; ++i) {
    const double squares = profile.squares(lowest + i * step);
    if (squares >= least) continue;
    least = squares;
    best = i;
  }
  double low = lowest + std::max(best - 1, 0) * step;
  double high = lowest + std::min(best + 1, kGrid) * step;
  const double golden = (std::sqrt(5.0) - 1) / 2;
  for (int i = 0; i < 100; ++i) {
    const double left = high - golden * (high - low);
    const double right = low + golden * (high - low);
    if (profile.squares(left) < profile.squares(right)) {
      high = right;
    } else {
      low = left;
    }
  }
  return (low + high) / 2;
}

/// Whether the optimum is at an end of the range of exponents.
bool is_bound(double log_exponent) {
  constexpr double kTolerance = 1e-3;
  return log_exponent < std::log(PowerLaw::kSmallestExponent) + kTolerance ||
         log_exponent > std::log(PowerLaw::kLargestExponent) - kTolerance;
}

}  // namespace

double PowerLaw::at(double size) const { return scale == 0 ? limit : limit + std::pow(scale / size, exponent); }

PowerLaw fit_power_law(const std::vector<double>& sizes, const std::vector<double>& losses) {
  if (sizes.size() != losses.size()) throw Error("a power law needs as many losses as sizes");
  if (std::set<double>(sizes.begin(), sizes.end()).size() < 3) throw Error("a power law needs three different sizes");
  for (const double size : sizes) {
    if (!(size > 0) || !std::isfinite(size)) throw Error("the sizes of a power law are positive");
  }
  const double unknown = std::nan("");
  for (const double loss : losses) {
    if (!std::isfinite(loss)) return {unknown, unknown, unknown, unknown};
  }

  const ExponentProfile profile(sizes, losses);
  const double log_exponent = best_log_exponent(profile);
  const LimitFit fit = profile.at(log_exponent);
  const double residual = std::sqrt(fit.squares / static_cast<double>(losses.size()));
  if (fit.amplitude == 0) return {fit.limit, 0, unknown, residual};
  const double exponent = std::exp(log_exponent);
  return {fit.limit, std::exp(profile.center() + std::log(fit.amplitude) / exponent), exponent, residual,
          is_bound(log_exponent)};
}

}  // namespace plumb
