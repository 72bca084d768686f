// Rules that judge a claim by measurements repeated over seeds. docs/verdicts.md explains them and lists their
// simulated error rates.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "plumb/analysis/statistics.h"

namespace plumb {

/// What the measurements say about a claim, in the setting in which they were made.
enum class Outcome { supported, contradicted, smaller, undecided, not_testable };
/// "no effect of that size" for smaller, "this setting cannot test it" for the last.
std::string to_string(Outcome outcome);

/// The verdict of a rule.
struct Judgment {
  Outcome outcome = Outcome::undecided;
  Interval effect{0, 0, 0, 0};  // of the judged quantity; its count is the number of seeds, 0 without an estimate
  std::string rule;             // with its margin: "supported if the 95% interval lies above 0.1"
  std::string reason{};         // if the interval alone does not explain the outcome: "2 of 3 runs diverged"
};

/// What a claim says about the expectation of a quantity: low < E < high. Either end may be infinite. A claim of
/// equality is a region around the value whose half-width is the margin of equivalence. A claim of an effect has a
/// null, the value without the effect, outside of its region: above(0.1, 0) is an increase, of which only more than 0.1
/// counts. Such a claim is not contradicted by an increase that is too small.
struct Region {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  double null = std::numeric_limits<double>::quiet_NaN();  // NaN: none

  static Region above(double bound) { return {bound}; }
  static Region above(double bound, double null) { return {bound, std::numeric_limits<double>::infinity(), null}; }
  static Region below(double bound) { return {-std::numeric_limits<double>::infinity(), bound}; }
  static Region below(double bound, double null) { return {-std::numeric_limits<double>::infinity(), bound, null}; }
  static Region around(double value, double margin) { return {value - margin, value + margin}; }
};

/// linear: the interval is of the mean; logarithmic: of the geometric mean of a positive quantity, such as a ratio.
enum class Scale { linear, logarithmic };

/// The confidence of intervals, unless several claims are judged together.
inline constexpr double kConfidence = 0.95;

/// Supported if the interval of the values, of 95% confidence unless another is given, one per seed, lies inside the
/// region; contradicted if it lies outside and beyond the null, if there is one; smaller if it lies outside, but not
/// beyond the null; otherwise undecided. A wider interval never helps, and fewer than three seeds decide nothing. A
/// value that is not finite (or not positive, on a logarithmic scale) makes the claim undecided.
Judgment judge(const std::vector<double>& values, const Region& region, Scale scale = Scale::linear,
               double confidence = kConfidence);

/// The same for an estimate that another method has made, named as in "95% interval of the difference".
Judgment judge_interval(const Interval& effect, const Region& region, const std::string& interval);

/// The outcome alone, for an interval whose seeds suffice.
Outcome outcome_of(const Interval& interval, const Region& region);

/// One of several conditions that a claim covers together: values by seed, and the region for them.
struct Condition {
  std::vector<double> values;
  Region region;
};

/// Claim: in every condition the expectation lies in the condition's region. Supported if every 95% interval does;
/// contradicted if an interval of confidence 1 − α/n, n the number of conditions and α = 0.05, lies outside
/// (Bonferroni). The effect is that of the worst condition, as the rule says: one that contradicts the claim, or
/// else one that does not support it, if there is one; among equals that whose mean is closest to the end of its
/// region, or furthest beyond it. With a null in the regions, one condition that lies outside without contradicting, at
/// that confidence, is no effect of that size. Throws Error without conditions.
Judgment judge_each(const std::vector<Condition>& conditions, Scale scale = Scale::linear,
                    double confidence = kConfidence);

/// One way to express the quantity that a claim is about, such as a norm alone or relative to another.
struct QuantityReading {
  std::string name;  // completes "0.98 (0.84 to 1.15)": "relative to layer 6"
  std::vector<double> values;
};

/// Claim about a quantity that its source does not define to the last detail: decided only if every reading gives the
/// same outcome, so no choice of a denominator turns it over. The effect is that of the first reading, and the reason
/// gives the others. Throws Error without readings.
Judgment judge_readings(const std::vector<QuantityReading>& readings, const Region& region, Scale scale = Scale::linear,
                        double confidence = kConfidence);

/// Claim: a law predicts a measurement within the margin; `errors`, by seed, are measured − predicted. Supported only
/// if `guess`, which takes no law and whose errors are `guess_errors`, is off by more than the margin, so that the law
/// is told from none; where the guess may be as good, the claim is undecided. The effect is that of the law.
Judgment judge_prediction(const std::vector<double>& errors, const std::vector<double>& guess_errors,
                          const std::string& guess, double margin, double confidence = kConfidence);

/// For no known loss from which a run has failed.
inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// The same as `judge` for differences of final losses between two arms, `first[i] - second[i]`, trained from the same
/// seed. A run whose loss is not below `failed_at` has failed and counts with that, however far beyond it ended; with
/// no limit, failed runs are those with an infinite loss, and counted, not averaged: an arm that fails more often, by
/// Fisher's exact test at 5%, counts as having the larger loss; otherwise the claim is undecided. Not testable if every
/// run failed. Throws Error if the arms have different numbers of runs.
Judgment judge_difference(const std::vector<double>& first, const std::vector<double>& second, const Region& region,
                          double confidence = kConfidence, double failed_at = kNoLimit);

/// What failed runs make of a judgment of the losses of all or, with no limit, of the others, by the rule of
/// `judge_difference`. The arms may have different numbers of runs.
Judgment with_failed_runs(Judgment judgment, const std::vector<double>& first, const std::vector<double>& second,
                          const Region& region, double confidence = kConfidence, double failed_at = kNoLimit);

/// P(X ≥ first) under the hypothesis that both groups fail equally often: Fisher's exact test, one-sided, for `first`
/// of `first_runs` and `second` of `second_runs` failed runs.
double failure_p_value(int64_t first, int64_t first_runs, int64_t second, int64_t second_runs);

/// Whether an outcome says something about the claim: neither undecided nor not testable.
bool is_decided(Outcome outcome);

/// Sets the outcome to not testable, or to undecided, if the setting cannot support the claim; an empty reason changes
/// nothing. `undecided_because` changes only decided outcomes.
Judgment not_testable_because(Judgment judgment, const std::string& reason);
Judgment undecided_because(Judgment judgment, const std::string& reason);

}  // namespace plumb
