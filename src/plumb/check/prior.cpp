#include "plumb/check/prior.h"

#include "plumb/analysis/critical_rate.h"
#include "plumb/analysis/first_step.h"
#include "plumb/base/error.h"
#include "plumb/check/planned_step.h"

namespace plumb::check {

Prior first_belief(const Evidence& evidence) {
  const TrainConfig& train = evidence.config;
  const Parameters& parameters = evidence.model.parameters();
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(train.optimizer, parameters, train.options);
  const std::optional<Preconditioning> scaled = optimizer->preconditioning();
  const bool signs = !scaled || !scaled->diagonal.empty();
  CriticalRateOptions options{.label_smoothing = train.label_smoothing, .loss = loss_of(evidence.task)};
  try {
    const Tensor gradient = clipped_gradient(evidence);
    const Tensor update = first_update(parameters, gradient, train.optimizer, train.options);
    std::vector<Tensor> parts = parameters.split(update);
    const std::vector<ParameterSettings> settings = planned_settings(evidence);
    for (size_t i = 0; i < parts.size(); ++i) {
      options.frozen.push_back(never_trained(settings[i], evidence));
      parts[i].mul_(options.frozen[i] ? 0 : settings[i].rate_factor);
    }
    if (const auto found = critical_learning_rate(evidence.model, evidence.batches, gradient, joined(parts), options)) {
      const double critical = found->rate();
      return {belief_of_critical_rate(critical, optimizer->beginning().momentum_gain, signs), critical, signs};
    }
  } catch (const Error&) {  // an optimizer without such a step
  }
  return {belief_of_planned_rate(evidence.peak_rate), std::nullopt, signs};
}

}  // namespace plumb::check
