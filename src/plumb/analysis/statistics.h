// Means with confidence intervals, fitted lines, and bounds on how far a variable exceeds its mean.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plumb/base/config.h"

namespace plumb {

/// A mean and an interval that contains the expectation with 95% confidence, unless stated otherwise.
struct Interval {
  double mean = 0;
  double low = 0;  // low and high are NaN if count is 1
  double high = 0;
  int64_t count = 0;
};
void describe(Fields& field, Interval& interval);

/// One number of each result.
template <typename Result, typename Number>
std::vector<double> numbers_in(const std::vector<Result>& results, const Number& number) {
  std::vector<double> values;
  for (const Result& each : results) values.push_back(std::invoke(number, each));
  return values;
}

/// Throws Error on no values.
double mean_of(const std::vector<double>& values);

/// Those of the values that are finite.
std::vector<double> finite_values(const std::vector<double>& values);

/// s² = Σ(x − x̄)²/(n − 1); NaN of a single value. Throws Error on no values.
double variance_of(const std::vector<double>& values);

/// mean ± t · s/√n with t = student_t_quantile((1 + confidence)/2, n − 1). Throws Error on no values.
Interval confidence_interval(const std::vector<double>& values, double confidence = 0.95);

/// The same for a quantity that cannot be negative: the lower end is at least 0.
Interval positive_interval(const std::vector<double>& values);

/// The geometric mean of positive values, and the interval of their logarithms' mean, in the unit of the values. Ratios
/// that multiply out for each seed do so for their geometric means too. NaN unless all values are positive.
Interval geometric_interval(const std::vector<double>& values, double confidence = 0.95);

/// For sizes, such as norms: geometric_interval, or positive_interval if some are 0.
Interval size_interval(const std::vector<double>& values);

/// P(|T| ≤ t) for Student's distribution: the finite sums of Abramowitz & Stegun 26.7.3 and 26.7.4. degrees ≥ 1, t ≥ 0.
double student_t_coverage(double t, int64_t degrees);

/// The t with P(T ≤ t) = probability; 0.5 ≤ probability < 1, degrees ≥ 1.
double student_t_quantile(double probability, int64_t degrees);

/// The mean over all pairs of arms of Pearson's correlation over seeds, where arms[i][seed] were measured with the same
/// seeds. Near 0, differences seed by seed are no more precise than those of independent runs. Arms with equal values
/// or one that is not finite are left out; NaN with fewer than two others, or fewer than three seeds. Throws Error if
/// the arms have different numbers of seeds.
double mean_correlation(const std::vector<std::vector<double>>& arms);

/// y = intercept + slope · x by least squares.
struct LineFit {
  double slope = 0;
  double intercept = 0;
  double slope_error = 0;  // standard error, √(RSS/(n − 2)/Σ(x − x̄)²); NaN with two points
  double r_squared = 0;    // 1 − RSS/TSS; 1 if all y are equal
};

/// Throws Error unless x and y have the same length and x contains two different values.
LineFit fit_line(const std::vector<double>& x, const std::vector<double>& y);

/// A variable Z ≥ 0 is (ε, δ)-bounded if (Z − EZ)/EZ ≤ ε with probability at least 1 − δ (Xiong et al. 2020, arXiv
/// 2002.04745, Definition 1), where E and the probability are taken over the sample. These return the smallest δ for a
/// given ε, and the smallest ε ≥ 0 for a given δ. They throw Error on an empty sample.
double bounded_delta(const std::vector<double>& sample, double epsilon);
double bounded_epsilon(std::vector<double> sample, double delta);

}  // namespace plumb
