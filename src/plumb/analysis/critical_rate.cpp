#include "plumb/analysis/critical_rate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plumb/analysis/batch_share.h"
#include "plumb/analysis/moved_parameters.h"
#include "plumb/base/error.h"

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

/// Rank 0's number. Processes on different machines may round differently, but must decide alike.
double of_rank_zero(double number, const Group& group) {
  if (group.size() == 1) return number;
  const Tensor told = at::full({1}, number, at::kDouble);
  group.broadcast(told);
  return told.item<double>();
}

}  // namespace

void describe(Fields& field, CriticalRate& rate) {
  field("low", rate.low);
  field("high", rate.high);
  field("passes", rate.passes);
}

double loss_of_batches(Model& model, const std::vector<Batch>& batches, const CriticalRateOptions& options) {
  const at::NoGradGuard no_graph;
  const double weight = total_weight(batches);
  double sum = 0;
  for (const Batch& batch : share_of_batches(batches, options.group)) {
    if (batch.weight() == 0) continue;
    ForwardContext context(Pass::measurement);
    const LossOptions loss_options{.label_smoothing = options.label_smoothing, .scale = 1 / weight};
    sum += options.loss(model, batch, loss_options, context).value.item<double>();
  }
  return options.group.sums({sum})[0];
}

double CriticalRate::rate() const { return std::sqrt(low * high); }

std::optional<CriticalRate> critical_learning_rate(Model& model, const std::vector<Batch>& batches,
                                                   const Tensor& gradient, const Tensor& update,
                                                   const CriticalRateOptions& options) {
  const Tensor way = model.tangent(update);
  const double slope = of_rank_zero(gradient.to(at::kDouble).dot(way.to(at::kDouble)).item<double>(), options.group);
  if (!(slope > 0) || !std::isfinite(slope)) return std::nullopt;
  const double here = loss_of_batches(model, batches, options);
  MovedParameters moved(model.parameters());
  RateSearch search(slope, options.tolerance);
  double rate = options.start;
  for (int64_t passes = 2; passes <= options.passes; ++passes) {
    moved.along(update, rate);
    model.constrain(options.frozen);
    search.learn(rate, loss_of_batches(model, batches, options) - here);
    if (search.done()) return CriticalRate{search.low(), search.high(), passes};
    rate = of_rank_zero(search.next(), options.group);
  }
  return std::nullopt;
}

}  // namespace plumb
