// The optimizer's ε against the gradients that it is added to.
#include <fmt/format.h>

#include "plumb/check/planned_step.h"
#include "plumb/check/thresholds.h"
#include "plumb/optim/optimizer.h"

namespace plumb::check {
namespace {

std::vector<Finding> measure_epsilon(const PlannedRun& planned) {
  const TrainConfig& train = planned.config;
  const Parameters& parameters = planned.model.parameters();
  const auto optimizer = make_optimizer(train.optimizer, parameters, train.options);
  const std::vector<Tensor> gradients = parameters.split(clipped_gradient(planned));
  for (int64_t i = optimizer->beginning().preparatory_steps; i >= 0; --i) optimizer->step(gradients, 0.0);
  const auto divided = optimizer->preconditioning();
  if (!divided || divided->floor.empty()) return {};
  // A step divides by √(mean g²) + ε; without gradient, the divisor is ε. Elements without gradient say nothing: they
  // may be tokens that the batch lacks.
  double below = 0, all = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!(divided->floor[i] > 0)) continue;
    const Tensor moves = gradients[i] != 0;
    below += (moves & (divided->diagonal[i] < 2 * divided->floor[i])).sum().item<double>();
    all += moves.sum().item<double>();
  }
  if (all == 0) return {};
  Finding finding{.value = below / all, .threshold = kMostBelowEpsilon};
  finding.raised = finding.value > finding.threshold;
  finding.text = fmt::format("ε of {} is larger than the gradient of {:.3g}% of all elements, whose steps it shortens",
                             train.optimizer, 100 * finding.value);
  finding.advice = fmt::format("a smaller train.{}.eps{}", train.optimizer,
                               clipping_factor(planned) < 0.01 ? ", or a larger train.clip_norm" : "");
  return {finding};
}

[[maybe_unused]] const bool kEpsilonAlarm = alarms().add("epsilon", "the optimizer's ε against the gradients",
                                                         "Kingma & Ba 2015, arXiv 1412.6980", {measure_epsilon, true});

}  // namespace
}  // namespace plumb::check
