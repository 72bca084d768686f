// The results of the watches "updates" and "layers": by layer, and for each parameter outside of layers.
#pragma once

#include "plumb/base/config.h"

namespace plumb {

/// ‖Δθ‖/‖θ‖ of a step.
struct UpdateMeasurement {
  static constexpr const char* kWatch = "updates";
  NamedNumbers ratio;
  double total = 0;  // of all parameters together
};
void describe(Fields& field, UpdateMeasurement& measurement);

/// Norms of a step, of all parameters together.
struct StepNorms {
  double gradient = 0;  // ‖g‖, before clipping
  double weight = 0;    // ‖θ‖ before the step
  double update = 0;    // ‖Δθ‖
};
void describe(Fields& field, StepNorms& norms);

/// The same norms by layer.
struct LayerMeasurement {
  static constexpr const char* kWatch = "layers";
  NamedNumbers gradient, weight, update;
  StepNorms total;
};
void describe(Fields& field, LayerMeasurement& measurement);

}  // namespace plumb
