// [watch] "critical_rate": the learning rate above which the last step would have raised the loss.
#include "plumb/analysis/critical_rate.h"

#include <utility>

#include "plumb/analysis/curvature/hessian.h"
#include "plumb/analysis/moved_parameters.h"
#include "plumb/analysis/watch/critical_rate.h"
#include "plumb/run/config.h"

namespace plumb {

void describe(Fields& field, CriticalRateWatchOptions& options) {
  field("passes", options.passes, "forward passes of one search, at most", count_from(3));
  field("tolerance", options.tolerance, "the two learning rates between which it lies may differ by this fraction",
        at_least(1e-4));
}

void describe(Fields& field, CriticalRateMeasurement& measurement) {
  field("learning_rate", measurement.learning_rate);
  field("loss_after", measurement.loss_after);
  field("loss_before", measurement.loss_before);
  field("slope", measurement.slope);
  field("value", measurement.value);
  field("low", measurement.low);
  field("high", measurement.high);
  field("share", measurement.share);
  field("passes", measurement.passes);
}

namespace {

/// Searches along u = (θ before − θ after)/η, the whole step, with clipping, decay and the groups' learning rates.
class CriticalRateWatch final : public Watch {
 public:
  explicit CriticalRateWatch(const CriticalRateWatchOptions& options) : options_(options) {}

  void before_step(const WatchedRun& run) override { before_ = run.model.parameters().flat().detach().clone(); }

  [[nodiscard]] Described measure(const WatchedRun& run) override {
    if (!before_.defined() || !(run.learning_rate > 0)) return {};  // before training
    const Tensor before = std::exchange(before_, Tensor());
    const Parameters& parameters = run.model.parameters();
    const Tensor update = (before - parameters.flat().detach()) / run.learning_rate;
    CriticalRateOptions search;
    search.start = run.learning_rate;
    search.tolerance = options_.tolerance;
    search.passes = options_.passes;
    search.label_smoothing = run.config.label_smoothing;
    for (const ParameterStep& each : run.settings) search.frozen.push_back(each.frozen);
    search.loss = loss_of(run.task);
    CriticalRateMeasurement measurement;
    measurement.learning_rate = run.learning_rate;
    measurement.loss_after = loss_of_batches(run.model, run.batches, search);
    MovedParameters moved(parameters);
    moved.to(before);
    const MeanLoss start = mean_loss(run.model, run.batches, search.label_smoothing, search.loss);
    measurement.loss_before = start.loss;
    measurement.slope = start.gradient.to(at::kDouble).dot(run.model.tangent(update).to(at::kDouble)).item<double>();
    if (const std::optional<CriticalRate> found =
            critical_learning_rate(run.model, run.batches, start.gradient, update, search)) {
      measurement.value = found->rate();
      measurement.low = found->low;
      measurement.high = found->high;
      measurement.share = run.learning_rate / found->rate();
      measurement.passes = found->passes;
    }
    return Described(measurement);
  }

 private:
  CriticalRateWatchOptions options_;
  Tensor before_;  // all parameters, only during a step that is measured
};

[[maybe_unused]] const bool kCriticalRateRegistered = watches().add(
    CriticalRateMeasurement::kWatch,
    "η_c, the η from which on L(θ − η·u) > L(θ), where θ is before the last step and η·u that step at its learning "
    "rate; L of the examples of [watch]",
    "arXiv 2601.16979", watch_factory<CriticalRateWatch, CriticalRateWatchOptions>(),
    Options(CriticalRateWatchOptions{}));

}  // namespace
}  // namespace plumb
