// How the planned run's optimizer will treat the gradient that alarms look at.
#pragma once

#include <string>
#include <vector>

#include "plumb/optim/groups.h"
#include "plumb/train/alarm.h"

namespace plumb::check {

/// The settings of each parameter ([[train.groups]]). Groups that are frozen for some tokens or epochs count as trained
/// from the start, because they are not frozen for good.
std::vector<ParameterSettings> planned_settings(const PlannedRun& planned);

/// Whether no step of the run updates the parameter.
bool never_trained(const ParameterSettings& settings, const PlannedRun& planned);

/// What clipping by norm multiplies the gradient by, at most 1.
double clipping_factor(const PlannedRun& planned);

/// The gradient as the optimizer receives it, (parameters).
Tensor clipped_gradient(const PlannedRun& planned);

/// "decoder.layers.3" of a layer's parameter, otherwise the parameter's own name.
std::string place_of(const Parameter& parameter);

}  // namespace plumb::check
