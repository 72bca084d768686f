#include "plumb/check/prior.h"

#include "plumb/analysis/critical_rate.h"
#include "plumb/analysis/first_step.h"
#include "plumb/base/error.h"
#include "plumb/check/planned_step.h"

namespace plumb::check {

Prior first_belief(const PlannedRun& planned) {
  const TrainConfig& train = planned.config;
  const Parameters& parameters = planned.model.parameters();
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(train.optimizer, parameters, train.options);
  const std::optional<Preconditioning> scaled = optimizer->preconditioning();
  const StepLength length = optimizer->scales_by_weights()       ? StepLength::weights
                            : scaled && scaled->diagonal.empty() ? StepLength::gradient
                                                                 : StepLength::sign;
  std::optional<double> critical;
  double gain = 1;
  CriticalRateOptions options{.label_smoothing = train.label_smoothing, .loss = loss_of(planned.task)};
  try {
    const Tensor gradient = clipped_gradient(planned);
    const Tensor update = first_update(parameters, gradient, train.optimizer, train.options);
    std::vector<Tensor> parts = parameters.split(update);
    const std::vector<ParameterSettings> settings = planned_settings(planned);
    for (size_t i = 0; i < parts.size(); ++i) {
      options.frozen.push_back(never_trained(settings[i], planned));
      parts[i].mul_(options.frozen[i] ? 0 : settings[i].rate_factor);
    }
    if (const auto found = critical_learning_rate(planned.model, planned.batches, gradient, joined(parts), options)) {
      gain = optimizer->beginning().momentum_gain;
      critical = found->rate();
    }
  } catch (const Error&) {  // an optimizer without such a step
  }
  return {belief_before_trials(critical, gain, length, planned.peak_rate), critical, length};
}

}  // namespace plumb::check
