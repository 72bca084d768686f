// The optimizer's ε against the gradients that it is added to.
#include <fmt/format.h>

#include "plumb/check/planned_step.h"
#include "plumb/optim/optimizer.h"

namespace plumb::check {
namespace {

std::vector<Reason> look_at_epsilon(const Evidence& evidence) {
  const TrainConfig& train = evidence.config;
  const Parameters& parameters = evidence.model.parameters();
  const auto optimizer = make_optimizer(train.optimizer, parameters, train.options);
  const std::vector<Tensor> gradients = parameters.split(clipped_gradient(evidence));
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
  Reason reason{.value = below / all, .threshold = 0.5};
  reason.raised = reason.value > reason.threshold;
  reason.text = fmt::format("ε of {} is larger than the gradient of {:.3g}% of all elements, whose steps it shortens",
                            train.optimizer, 100 * reason.value);
  reason.advice = fmt::format("a smaller train.{}.eps{}", train.optimizer,
                              clipping_factor(evidence) < 0.01 ? ", or a larger train.clip_norm" : "");
  return {reason};
}

[[maybe_unused]] const bool kEpsilonLookedAt = alarms().add(
    "epsilon", "the optimizer's ε against the gradients", "Kingma & Ba 2015, arXiv 1412.6980", {look_at_epsilon, true});

}  // namespace
}  // namespace plumb::check
