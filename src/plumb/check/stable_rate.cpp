#include "plumb/check/stable_rate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plumb/check/verdict.h"

namespace plumb::check {
namespace {

constexpr double kLowest = -60;     // log₂ of the grid's first rate: losses may have any unit
constexpr double kHighest = 60;     // and its last
constexpr int64_t kPerOctave = 16;  // values of the grid
constexpr double kSlope = 0.3;      // s in octaves: from 10 % to 90 % failures within 1.3 octaves
constexpr double kLapse = 0.03;     // λ
constexpr double kTail = 0.1;       // outside of the interval, on each side

/// c, and the standard deviation of log₂ η₅₀ around c·η_c. Under Adam and other optimizers whose first step is about a
/// sign of the gradient, η₅₀/η_c was .013, .08, .006 and .4 for four residual schemes with 6+6 layers; under gradient
/// descent, η₅₀ was within a factor of 2 of η_c(1 − μ).
struct Ratio {
  double factor, octaves;
};
constexpr Ratio kOfSigns = {0.04, 2.5};
constexpr Ratio kOfGradients = {0.7, 1.5};
constexpr double kUnmeasured = 4;  // octaves around the planned rate

double value_of(size_t i) { return kLowest + static_cast<double>(i) / kPerOctave; }

}  // namespace

double RateEstimate::octaves() const { return std::log2(high / low); }

void describe(Fields& field, RateEstimate& estimate) {
  field("estimate", estimate.estimate);
  field("low", estimate.low);
  field("high", estimate.high);
}

RateBelief::RateBelief(double median, double octaves)
    : weights_(static_cast<size_t>((kHighest - kLowest) * kPerOctave) + 1) {
  const double center = std::clamp(std::log2(median), kLowest, kHighest);
  for (size_t i = 0; i < weights_.size(); ++i)
    weights_[i] = std::exp(-std::pow((value_of(i) - center) / octaves, 2) / 2);
  const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  for (double& weight : weights_) weight /= sum;
}

void RateBelief::see(double rate, bool failed) {
  double sum = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const double fails = kLapse + (1 - 2 * kLapse) / (1 + std::exp((value_of(i) - std::log2(rate)) / kSlope));
    weights_[i] *= failed ? fails : 1 - fails;
    sum += weights_[i];
  }
  for (double& weight : weights_) weight /= sum;
}

double RateBelief::quantile(double probability) const {
  double below = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (below + weights_[i] >= probability) {
      const double within = weights_[i] > 0 ? (probability - below) / weights_[i] : 0.5;
      return std::exp2(value_of(i) + (within - 0.5) / kPerOctave);
    }
    below += weights_[i];
  }
  return std::exp2(kHighest);
}

RateEstimate RateBelief::estimate() const { return {quantile(0.5), quantile(kTail), quantile(1 - kTail)}; }

RateBelief belief_before_trials(std::optional<double> critical_rate, double momentum_gain, StepLength length,
                                double planned) {
  constexpr double kUsual = 1e-3;
  if (!critical_rate) return {planned > 0 ? planned : kUsual, kUnmeasured};
  const Ratio& ratio = length == StepLength::gradient ? kOfGradients : kOfSigns;
  return {ratio.factor * *critical_rate / momentum_gain, ratio.octaves};
}

double rate_to_recommend(double largest_stable, double planned, StepLength length) {
  // Octaves. The bounds hold for rates in another unit than the validation's, and bind in none of its runs.
  const double stable = std::log2(largest_stable);
  const double below = length == StepLength::gradient
                           ? std::clamp(1.25 + 0.15 * stable, 0.9, 1.5)
                           : std::clamp((length == StepLength::sign ? 5.625 : 3.125) + 0.5 * stable, 0.5, 6.0);
  return planned_if_as_good(planned, largest_stable * std::exp2(-below));
}

double planned_if_as_good(double planned, double rate) {
  constexpr double kAsGood = 0.5;
  return std::abs(std::log2(rate / planned)) <= kAsGood ? planned : rate;
}

void describe(Fields& field, Gain& gain) {
  field("nats", gain.nats);
  field("low", gain.low);
  field("high", gain.high);
}

std::pair<double, double> loss_above_best(StepLength length) {
  return length == StepLength::gradient ? std::pair(0.05, 0.1) : std::pair(0.08, 0.21);
}

std::optional<Gain> gain_of_recommended(double planned, double recommended) {
  constexpr double kMost = 5;  // octaves: the runs have up to four
  const double octaves = std::log2(recommended / planned);
  if (!(planned > 0 && octaves >= 1)) return std::nullopt;
  const double counted = std::min(octaves, kMost);
  return Gain{0.17 * counted, 0.06 * counted, 0.25 * counted};
}

Gain gain_of_warm_up(StepLength length) {
  return length == StepLength::gradient ? Gain{0.11, 0.01, 0.21} : Gain{0.06, -0.06, 0.15};
}

double warm_up_lift(std::optional<double> gradient_at_input) {
  constexpr double kSmallest = 1e-12;  // a gradient of 0
  const double usual = 0.66;
  if (!gradient_at_input) return usual;
  return usual + 0.18 * std::max(0.0, std::log10(kGradientAtInput / std::max(*gradient_at_input, kSmallest)));
}

}  // namespace plumb::check
