// The largest stable learning rate, from trials at several rates.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "plumb/base/config.h"

namespace plumb::check {

/// A rate with the interval that contains the true one with 80 % probability.
struct RateEstimate {
  double estimate = 0;
  double low = 0;
  double high = 0;

  /// The width of the interval in octaves, log₂(high/low).
  [[nodiscard]] double octaves() const;
};
void describe(Fields& field, RateEstimate& estimate);

/// What is believed about log₂ of the largest stable rate η₅₀, at which half of all runs fail. A run at rate η fails
/// with probability
///   p(η) = λ + (1 − 2λ) / (1 + exp(−(log₂ η − log₂ η₅₀)/s)),
/// a psychometric function with slope s and lapse rate λ, by which a single surprising trial cannot decide. The belief
/// begins as a normal distribution, and each trial multiplies it by the likelihood of its outcome.
class RateBelief {
 public:
  /// `median`: the best guess before any trial; `octaves`: the standard deviation of log₂ around it.
  RateBelief(double median, double octaves);

  /// A trial at this rate failed or not.
  void see(double rate, bool failed);

  /// The median and the central 80 % interval.
  [[nodiscard]] RateEstimate estimate() const;

  /// The rate below which η₅₀ lies with this probability.
  [[nodiscard]] double quantile(double probability) const;

 private:
  std::vector<double> weights_;  // of the values of log₂ η₅₀ on a grid; they sum to 1
};

/// What the length of an optimizer's steps follows beside the learning rate: that of the gradient, as in gradient
/// descent; nothing, since they are about a sign of the gradient, as Adam's; or that of the weights, as Adafactor's.
enum class StepLength { gradient, sign, weights };

/// The belief before any trial, from the critical rate η_c of the optimizer's first step, above which that step raises
/// the loss (analysis/critical_rate.h): η₅₀ ≈ c·η_c/`momentum_gain` with a wide deviation, as η_c alone ranks residual
/// schemes poorly under Adam. Without a critical rate, around the planned one, or a usual one if that is 0.
RateBelief belief_before_trials(std::optional<double> critical_rate, double momentum_gain, StepLength length,
                                double planned);

/// A rate to train with, below the largest stable one η₅₀: 0.42·η₅₀^0.85 for gradient descent, 0.02·√η₅₀ for steps like
/// signs, and 0.11·√η₅₀ for steps by the weights; best rates span fewer octaves than stable ones. With these numbers
/// the runs that validate the search give away least (docs/check.md). The planned rate itself if it is as good.
double rate_to_recommend(double largest_stable, double planned, StepLength length);

/// The planned rate if it lies within half an octave of the other one, which is returned otherwise.
double planned_if_as_good(double planned, double rate);

/// By how much a recommended rate ended above the best one in those runs, in nats per label: on average, and at most in
/// nine of ten; of constants that were learned without the run's residual scheme.
std::pair<double, double> loss_above_best(StepLength length);

/// Nats per label, with an 80% interval.
struct Gain {
  double nats = 0, low = 0, high = 0;
};
void describe(Fields& field, Gain& gain);

/// By how much the recommended rate ended below the planned one in those runs, where it was at least twice as large.
/// Empty otherwise.
std::optional<Gain> gain_of_recommended(double planned, double recommended);

/// By how much runs with 200 steps of warm-up, at the rate that trials without one recommend for them, ended below
/// those without, at theirs.
Gain gain_of_warm_up(StepLength length);

/// By how many octaves a warm-up raises the largest stable rate. What a trial without one has shown tells how much: a
/// divergence is hardly cured, but where tokens collapse, so that only this share of the last layer's gradient reaches
/// the first (check/gradient.h), it helps the more the less arrives. Empty: no trial has failed in this way.
double warm_up_lift(std::optional<double> gradient_at_input);

}  // namespace plumb::check
