// [watch] "critical_rate": the learning rate above which the last step would have raised the loss.
#include "plumb/analysis/critical_rate.h"

#include <utility>

#include "plumb/analysis/curvature/hessian.h"
#include "plumb/analysis/moved_parameters.h"
#include "plumb/optim/checks.h"
#include "plumb/run/config.h"

namespace plumb {
namespace {

struct CriticalRateWatchOptions {
  int64_t passes = 30;
  double tolerance = 0.05;
};
void describe(Fields& field, CriticalRateWatchOptions& options) {
  field("passes", options.passes, "forward passes of one search, at most");
  field("tolerance", options.tolerance, "the two learning rates between which it lies may differ by this fraction");
}

/// Searches along u = (θ before − θ after)/η, the whole step, with clipping, decay and the groups' learning rates.
class CriticalRateWatch final : public Watch {
 public:
  explicit CriticalRateWatch(const CriticalRateWatchOptions& options) : options_(options) {
    check_at_least("watch.critical_rate.passes", options.passes, int64_t{3});
    check_at_least("watch.critical_rate.tolerance", options.tolerance, 1e-4);
  }

  void before_step(const WatchedRun& run) override { before_ = run.model.parameters().flat().detach().clone(); }

  [[nodiscard]] Json measure(const WatchedRun& run) override {
    if (!before_.defined() || !(run.learning_rate > 0)) return nullptr;  // before training
    const Tensor before = std::exchange(before_, Tensor());
    const Parameters& parameters = run.model.parameters();
    const Tensor update = (before - parameters.flat().detach()) / run.learning_rate;
    CriticalRateOptions search;
    search.start = run.learning_rate;
    search.tolerance = options_.tolerance;
    search.passes = options_.passes;
    search.label_smoothing = run.config.label_smoothing;
    for (const ParameterStep& each : run.settings) search.frozen.push_back(each.frozen);
    search.loss = [&run](Model& model, const Batch& batch, const LossOptions& options, ForwardContext& context) {
      return run.task.loss(model, batch, options, context);
    };
    Json json;
    json["learning_rate"] = run.learning_rate;
    json["loss_after"] = loss_of_batches(run.model, run.batches, search);
    MovedParameters moved(parameters);
    moved.to(before);
    const MeanLoss start = mean_loss(run.model, run.batches, search.label_smoothing, search.loss);
    json["loss_before"] = start.loss;
    json["slope"] =
        start.gradient.to(at::kDouble).dot(run.model.tangent(update).to(at::kDouble)).item<double>();
    const std::optional<CriticalRate> found =
        critical_learning_rate(run.model, run.batches, start.gradient, update, search);
    if (!found) return json;
    json["value"] = found->rate();
    json["low"] = found->low;
    json["high"] = found->high;
    json["share"] = run.learning_rate / found->rate();
    json["passes"] = found->passes;
    return json;
  }

 private:
  CriticalRateWatchOptions options_;
  Tensor before_;  // all parameters, only during a step that is measured
};

[[maybe_unused]] const bool kCriticalRateRegistered = watches().add(
    "critical_rate",
    "η_c, the η from which on L(θ − η·u) > L(θ), where θ is before the last step and η·u that step at its learning "
    "rate; L of the examples of [watch]",
    "arXiv 2601.16979",
    [](const Options& options) { return std::make_unique<CriticalRateWatch>(options.as<CriticalRateWatchOptions>()); },
    Options(CriticalRateWatchOptions{}));

}  // namespace
}  // namespace plumb
