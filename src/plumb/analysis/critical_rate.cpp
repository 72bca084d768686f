#include "plumb/analysis/critical_rate.h"

#include <cmath>

#include "plumb/analysis/batch_share.h"
#include "plumb/analysis/moved_parameters.h"

namespace plumb {
namespace {

/// Rank 0's number. Processes on different machines may round differently, but must decide alike.
double of_rank_zero(double number, const Group& group) {
  if (group.size() == 1) return number;
  const Tensor told = at::full({1}, number, at::kDouble);
  group.broadcast(told);
  return told.item<double>();
}

}  // namespace

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

std::optional<CriticalRate> critical_learning_rate(Model& model, const std::vector<Batch>& batches,
                                                   const Tensor& gradient, const Tensor& update,
                                                   const CriticalRateOptions& options) {
  const Tensor way = model.tangent(update);
  const double slope = of_rank_zero(gradient.to(at::kDouble).dot(way.to(at::kDouble)).item<double>(), options.group);
  if (!(slope > 0) || !std::isfinite(slope)) return std::nullopt;
  const double here = loss_of_batches(model, batches, options);
  MovedParameters moved(model.parameters());
  const auto rise = [&](double rate) {
    moved.along(update, rate);
    model.constrain(options.frozen);
    return loss_of_batches(model, batches, options) - here;
  };
  return find_critical_rate(slope, rise, {options.start, options.tolerance, options.passes - 1},
                            [&](double rate) { return of_rank_zero(rate, options.group); });
}

}  // namespace plumb
