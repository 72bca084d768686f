#include "plumb/analysis/rate_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plumb {
namespace {

/// The largest factor from one learning rate to the next as long as none has raised the loss.
constexpr double kLargestStride = 30;
constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// The search for the zero of h(η) = (L(w − η·u) − L(w))/(η·gᵀu), which is −1 at η = 0 and a straight line for a
/// quadratic loss. Values far above the zero say little about it, so h is capped at 1.
class RateSearch {
 public:
  RateSearch(double slope, double tolerance) : slope_(slope), tolerance_(tolerance) {}

  [[nodiscard]] bool done() const { return low_.rate > 0 && high_.rate <= low_.rate * (1 + tolerance_); }
  [[nodiscard]] double low() const { return low_.rate; }
  [[nodiscard]] double high() const { return high_.rate; }

  void learn(double rate, double rise) {
    const double h = std::isfinite(rise) ? std::min(rise / rate / slope_, 1.0) : 1.0;
    const bool is_low = h <= 0;
    repeated_ = tried_ && is_low == was_low_;
    tried_ = true;
    was_low_ = is_low;
    (is_low ? low_ : high_) = {rate, h};
  }

  /// The next learning rate to try: the zero of the line through the ends, moved a little toward the end that did not
  /// move last; the middle if the same end moved twice.
  [[nodiscard]] double next() const {
    const double beyond = tolerance_ / 3;
    if (!std::isfinite(high_.rate)) {
      const double zero = low_.h > -1 ? low_.rate / (low_.h + 1) : kUnbounded;
      return std::clamp(zero * (1 + beyond), 2 * low_.rate, kLargestStride * low_.rate);
    }
    if (low_.rate == 0) return (high_.h < 1 ? high_.rate / (high_.h + 1) : high_.rate / 8) * (1 - beyond);
    const double middle = std::sqrt(low_.rate * high_.rate);
    if (repeated_) return middle;
    const double part = -low_.h / (high_.h - low_.h);
    const double zero =
        high_.h < 1 ? low_.rate + (high_.rate - low_.rate) * part : low_.rate * std::pow(high_.rate / low_.rate, part);
    const double wanted = zero * (was_low_ ? 1 + beyond : 1 - beyond);
    return wanted > low_.rate && wanted < high_.rate ? wanted : middle;
  }

 private:
  struct Tried {
    double rate, h;
  };
  double slope_;
  double tolerance_;
  Tried low_{0, -1};
  Tried high_{kUnbounded, 1};
  bool tried_ = false;
  bool was_low_ = false;
  bool repeated_ = false;
};

}  // namespace

void describe(Fields& field, CriticalRate& rate) {
  field("low", rate.low);
  field("high", rate.high);
  field("passes", rate.passes);
}

double CriticalRate::rate() const { return std::sqrt(low * high); }

std::optional<CriticalRate> find_critical_rate(double slope, const std::function<double(double)>& rise,
                                               const RateSearchOptions& options,
                                               const std::function<double(double)>& agreed) {
  if (!(slope > 0) || !std::isfinite(slope)) return std::nullopt;
  RateSearch search(slope, options.tolerance);
  double rate = options.start;
  for (int64_t passes = 1; passes <= options.passes; ++passes) {
    search.learn(rate, rise(rate));
    if (search.done()) return CriticalRate{search.low(), search.high(), passes + 1};
    rate = agreed ? agreed(search.next()) : search.next();
  }
  return std::nullopt;
}

}  // namespace plumb
