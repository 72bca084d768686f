#include "plumb/check/planned_step.h"

#include <cmath>

#include "plumb/nn/layer_id.h"
#include "plumb/ops/update.h"
#include "plumb/run/parametrization.h"

namespace plumb::check {

std::vector<ParameterSettings> planned_settings(const Evidence& evidence) {
  TrainConfig train = evidence.config;
  for (ParameterGroup& group : train.groups) {
    for (Duration* each : {&group.warm_up, &group.frozen_until, &group.frozen_again_from, &group.frozen_again_until}) {
      if (each->unit() != Duration::Unit::steps) *each = 0;
    }
  }
  return parameter_settings(evidence.model, train);
}

bool never_trained(const ParameterSettings& settings, const Evidence& evidence) {
  return settings.rate_factor == 0 || settings.frozen_until < 0 || settings.frozen_until > evidence.steps;
}

double clipping_factor(const Evidence& evidence) {
  const double most = evidence.config.clip_norm;
  const double square = ops::sum_of_squares(evidence.gradient);
  const double norm = std::sqrt(square);
  return most > 0 && norm > most ? most / norm : 1;
}

Tensor clipped_gradient(const Evidence& evidence) { return joined(evidence.gradient) * clipping_factor(evidence); }

std::string place_of(const Parameter& parameter) {
  const std::optional<LayerId> id = LayerId::of_parameter(parameter.name);
  return id && id->layer ? to_string(LayerId{id->stack, id->layer}) : parameter.name;
}

}  // namespace plumb::check
