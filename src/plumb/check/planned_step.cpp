#include "plumb/check/planned_step.h"

#include <cmath>

#include "plumb/nn/layer_id.h"
#include "plumb/ops/update.h"
#include "plumb/run/parametrization.h"

namespace plumb::check {

std::vector<ParameterSettings> planned_settings(const PlannedRun& planned) {
  TrainConfig train = planned.config;
  for (ParameterGroup& group : train.groups) {
    for (Duration* each : {&group.warm_up, &group.frozen_until, &group.frozen_again_from, &group.frozen_again_until}) {
      if (each->unit() != Duration::Unit::steps) *each = 0;
    }
  }
  return parameter_settings(planned.model, train);
}

bool never_trained(const ParameterSettings& settings, const PlannedRun& planned) {
  return settings.rate_factor == 0 || settings.frozen_until < 0 || settings.frozen_until > planned.steps;
}

double clipping_factor(const PlannedRun& planned) {
  const double most = planned.config.clip_norm;
  const double square = ops::sum_of_squares(planned.gradient);
  const double norm = std::sqrt(square);
  return most > 0 && norm > most ? most / norm : 1;
}

Tensor clipped_gradient(const PlannedRun& planned) { return joined(planned.gradient) * clipping_factor(planned); }

std::string place_of(const Parameter& parameter) {
  const std::optional<LayerId> id = LayerId::of_parameter(parameter.name);
  return id && id->layer ? to_string(LayerId{id->stack, id->layer}) : parameter.name;
}

}  // namespace plumb::check
