// Rules that judge a claim by measurements repeated over seeds. docs/verdicts.md explains them and lists their
// simulated error rates.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "plumb/analysis/statistics.h"

namespace plumb {

/// What the measurements say about a claim, in the setting in which they were made.
enum class Outcome { supported, contradicted, undecided, not_testable };
std::string to_string(Outcome outcome);  // "not testable here" for the last

/// The verdict of a rule.
struct Judgment {
  Outcome outcome = Outcome::undecided;
  Interval effect{0, 0, 0, 0};  // of the judged quantity; its count is the number of seeds, 0 without an estimate
  std::string rule;             // with its margin: "supported if the 95% interval lies above 0.1"
  std::string reason{};         // if the interval alone does not explain the outcome: "2 of 3 runs diverged"
};

/// What a claim says about the expectation of a quantity: low < E < high. Either end may be infinite. A claim of
/// equality is a region around the value whose half-width is the margin of equivalence.
struct Region {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  static Region above(double bound) { return {bound}; }
  static Region below(double bound) { return {-std::numeric_limits<double>::infinity(), bound}; }
  static Region around(double value, double margin) { return {value - margin, value + margin}; }
};

/// linear: the interval is of the mean; logarithmic: of the geometric mean of a positive quantity, such as a ratio.
enum class Scale { linear, logarithmic };

/// Supported if the 95% interval of the values, one per seed, lies inside the region; contradicted if it lies outside;
/// otherwise undecided. A wider interval never helps, and one seed decides nothing. A value that is not finite (or not
/// positive, on a logarithmic scale) makes the claim undecided.
Judgment judge(const std::vector<double>& values, const Region& region, Scale scale = Scale::linear);

/// One of several conditions that a claim covers together: values by seed, and the region for them.
struct Condition {
  std::vector<double> values;
  Region region;
};

/// Claim: in every condition the expectation lies in the condition's region. Supported if every 95% interval does;
/// contradicted if an interval of confidence 1 − 0.05/n, n the number of conditions, lies outside (Bonferroni). The
/// effect is that of the condition whose mean is closest to the end of its region, or furthest beyond it. Throws Error
/// without conditions.
Judgment judge_each(const std::vector<Condition>& conditions);

/// The same for differences of final losses between two arms, `first[i] - second[i]`, trained from the same seed; an
/// infinite loss is a run that diverged. Diverged runs are counted, not averaged: an arm that diverges more often, by
/// Fisher's exact test at 5%, counts as having the larger loss; otherwise the claim is undecided. Not testable if every
/// run diverged. Throws Error if the arms have different numbers of runs.
Judgment judge_difference(const std::vector<double>& first, const std::vector<double>& second, const Region& region);

/// Claim: the quantity grows along an ordered list of conditions. values: [seed][condition]. The sum over seeds of
/// Kendall's S (concordant minus discordant pairs) is compared with its exact distribution for random orders: supported
/// if P(S ≥ measured) ≤ 0.025, contradicted if P(S ≤ measured) ≤ 0.025. The effect is Kendall's τ. Values that are not
/// finite make the claim undecided. Throws Error if seeds differ in their number of conditions, or have fewer than two.
Judgment judge_growth(const std::vector<std::vector<double>>& values);

/// P(X ≥ first) under the hypothesis that both groups diverge equally often: Fisher's exact test, one-sided, for
/// `first` of `first_runs` and `second` of `second_runs` diverged runs.
double divergence_p_value(int64_t first, int64_t first_runs, int64_t second, int64_t second_runs);

/// Sets the outcome to not testable, or to undecided, if the setting cannot support the claim; an empty reason changes
/// nothing. `undecided_because` changes only decided outcomes (supported, contradicted).
Judgment not_testable_because(Judgment judgment, const std::string& reason);
Judgment undecided_because(Judgment judgment, const std::string& reason);

}  // namespace plumb
