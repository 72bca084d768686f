#include "plumb/analysis/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "plumb/base/error.h"

namespace plumb {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void describe(Fields& field, Interval& interval) {
  field("mean", interval.mean);
  field("low", interval.low);
  field("high", interval.high);
  field("count", interval.count);
}

double mean_of(const std::vector<double>& values) {
  if (values.empty()) throw Error("a statistic needs at least one value");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> finite_values(const std::vector<double>& values) {
  std::vector<double> kept;
  std::copy_if(values.begin(), values.end(), std::back_inserter(kept), [](double x) { return std::isfinite(x); });
  return kept;
}

double variance_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  if (values.size() == 1) return kUndefined;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares / static_cast<double>(values.size() - 1);
}

Interval confidence_interval(const std::vector<double>& values, double confidence) {
  const double mean = mean_of(values);
  const auto count = static_cast<int64_t>(values.size());
  if (count == 1) return {mean, kUndefined, kUndefined, count};
  const double half =
      student_t_quantile((1 + confidence) / 2, count - 1) * std::sqrt(variance_of(values) / static_cast<double>(count));
  return {mean, mean - half, mean + half, count};
}

Interval positive_interval(const std::vector<double>& values) {
  Interval interval = confidence_interval(values);
  if (interval.low < 0) interval.low = 0;
  return interval;
}

Interval geometric_interval(const std::vector<double>& values, double confidence) {
  std::vector<double> logs;
  for (const double value : values) logs.push_back(value > 0 ? std::log(value) : kUndefined);
  const Interval interval = confidence_interval(logs, confidence);
  return {std::exp(interval.mean), std::exp(interval.low), std::exp(interval.high), interval.count};
}

Interval size_interval(const std::vector<double>& values) {
  const bool positive = std::all_of(values.begin(), values.end(), [](double value) { return value > 0; });
  return positive ? geometric_interval(values) : positive_interval(values);
}

double student_t_coverage(double t, int64_t degrees) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(degrees)));
  const double sine = std::sin(angle);
  const double cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  // Odd: cos + 2/3 cos³ + 2·4/(3·5) cos⁵ + … to cos^(ν−2). Even: 1 + 1/2 cos² + 1·3/(2·4) cos⁴ + … to cos^(ν−2).
  double term = odd ? cosine : 1.0;
  double sum = 0;
  for (int64_t power = odd ? 1 : 0; power <= degrees - 2; power += 2) {
    sum += term;
    term *= cosine * cosine * static_cast<double>(power + 1) / static_cast<double>(power + 2);
  }
  return odd ? (angle + sine * sum) * 2 / std::numbers::pi : sine * sum;
}

double student_t_quantile(double probability, int64_t degrees) {
  const double coverage = 2 * probability - 1;
  double high = 1;
  while (student_t_coverage(high, degrees) < coverage) high *= 2;
  double low = 0;
  while (low < high) {
    const double middle = low + (high - low) / 2;
    if (middle == low || middle == high) break;
    (student_t_coverage(middle, degrees) < coverage ? low : high) = middle;
  }
  return high;
}

double mean_correlation(const std::vector<std::vector<double>>& arms) {
  std::vector<std::vector<double>> scores;  // of each arm, with mean 0 and length 1
  for (const std::vector<double>& arm : arms) {
    if (arm.size() != arms.front().size()) throw Error("arms are correlated over the same seeds");
    if (arm.size() < 3 || !std::all_of(arm.begin(), arm.end(), [](double x) { return std::isfinite(x); })) continue;
    std::vector<double> score = arm;
    const double mean = mean_of(arm);
    for (double& each : score) each -= mean;
    const double length = std::sqrt(std::inner_product(score.begin(), score.end(), score.begin(), 0.0));
    if (length == 0) continue;
    for (double& each : score) each /= length;
    scores.push_back(score);
  }
  double sum = 0;
  int64_t pairs = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    for (size_t k = 0; k < i; ++k, ++pairs)
      sum += std::inner_product(scores[i].begin(), scores[i].end(), scores[k].begin(), 0.0);
  }
  return pairs == 0 ? kUndefined : sum / static_cast<double>(pairs);
}

LineFit fit_line(const std::vector<double>& x, const std::vector<double>& y) {
  if (x.size() != y.size()) throw Error("fitting a line needs equally many values of x and y");
  const double x_mean = mean_of(x);
  const double y_mean = mean_of(y);
  double xx = 0;
  double xy = 0;
  double yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - x_mean) * (x[i] - x_mean);
    xy += (x[i] - x_mean) * (y[i] - y_mean);
    yy += (y[i] - y_mean) * (y[i] - y_mean);
  }
  if (xx == 0) throw Error("fitting a line needs two points with different x");
  LineFit fit;
  fit.slope = xy / xx;
  fit.intercept = y_mean - fit.slope * x_mean;
  double residual = 0;
  for (size_t i = 0; i < x.size(); ++i) residual += std::pow(y[i] - fit.intercept - fit.slope * x[i], 2);
  const double freedom = static_cast<double>(x.size()) - 2;
  fit.slope_error = freedom > 0 ? std::sqrt(residual / freedom / xx) : kUndefined;
  fit.r_squared = yy > 0 ? 1 - residual / yy : 1;
  return fit;
}

double bounded_delta(const std::vector<double>& sample, double epsilon) {
  const double limit = mean_of(sample) * (1 + epsilon);
  const auto above = std::count_if(sample.begin(), sample.end(), [limit](double z) { return z > limit; });
  return static_cast<double>(above) / static_cast<double>(sample.size());
}

double bounded_epsilon(std::vector<double> sample, double delta) {
  const double mean = mean_of(sample);
  // δ allows this many values above the limit; the largest of the others is the limit.
  const auto allowed = std::min(static_cast<size_t>(delta * static_cast<double>(sample.size())), sample.size() - 1);
  const auto limit = sample.begin() + static_cast<std::ptrdiff_t>(allowed);
  std::nth_element(sample.begin(), limit, sample.end(), std::greater<>());
  return mean > 0 ? std::max(0.0, *limit / mean - 1) : 0;
}

}  // namespace plumb
