#include "plumb/analysis/scaling_exponent.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "plumb/base/error.h"

namespace plumb {

std::string to_string(Trend trend) {
  constexpr std::array<const char*, 5> kNames = {"grows", "constant", "shrinks", "undecided", "diverged"};
  return kNames.at(static_cast<size_t>(trend));
}

ScalingExponent scaling_exponent(const std::vector<double>& scales, const std::vector<std::vector<double>>& sizes,
                                 double margin) {
  if (scales.size() < 2 || sizes.empty()) throw Error("an exponent needs at least two scales and one seed");
  std::vector<double> x;
  for (const double scale : scales) x.push_back(std::log(scale));
  std::vector<double> slopes;
  std::vector<double> ends;
  for (const std::vector<double>& of_seed : sizes) {
    if (of_seed.size() != scales.size()) throw Error("an exponent needs one size for each scale");
    std::vector<double> y;
    for (const double size : of_seed) y.push_back(std::log(size));
    if (!std::all_of(y.begin(), y.end(), [](double value) { return std::isfinite(value); })) {
      constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
      return {{kNone, kNone, kNone, std::ssize(sizes)}, kNone, Trend::diverged};
    }
    slopes.push_back(fit_line(x, y).slope);
    const size_t last = scales.size() - 1;
    ends.push_back((y[last] - y[last - 1]) / (x[last] - x[last - 1]));
  }
  ScalingExponent found{confidence_interval(slopes), confidence_interval(ends).mean, Trend::undecided};
  const auto [mean, low, high, count] = found.exponent;
  if (count > 1) {
    if (low > margin) found.trend = Trend::grows;
    if (high < -margin) found.trend = Trend::shrinks;
    if (low >= -margin && high <= margin) found.trend = Trend::constant;
  }
  return found;
}

}  // namespace plumb
