#include "plumb/check/prior.h"

#include "plumb/analysis/critical_rate.h"
#include "plumb/analysis/first_step.h"
#include "plumb/base/error.h"
#include "plumb/check/planned_step.h"

namespace plumb::check {
namespace {

/// c, and the standard deviation of log₂ η₅₀ around c·η_c. Under Adam and other optimizers whose first step is about a
/// sign of the gradient, η₅₀/η_c was .013, .08, .006 and .4 for four residual schemes with 6+6 layers; under gradient
/// descent, η₅₀ was within a factor of 2 of η_c(1 − μ).
struct Ratio {
  double factor, octaves;
};
constexpr Ratio kOfSigns = {0.04, 2.5};
constexpr Ratio kOfGradients = {0.7, 1.5};
constexpr double kUnmeasured = 4;  // octaves around the planned rate

}  // namespace

Prior first_belief(const Evidence& evidence) {
  const TrainConfig& train = evidence.config;
  const double guess = evidence.peak_rate > 0 ? evidence.peak_rate : 1e-3;
  const Parameters& parameters = evidence.model.parameters();
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
      const Ratio& ratio = train.optimizer == "sgd" ? kOfGradients : kOfSigns;
      const double critical = found->rate();
      const double gain = make_optimizer(train.optimizer, parameters, train.options)->beginning().momentum_gain;
      return {{ratio.factor * critical / gain, ratio.octaves}, critical};
    }
  } catch (const Error&) {  // an optimizer without such a step
  }
  return {{guess, kUnmeasured}, std::nullopt};
}

}  // namespace plumb::check
