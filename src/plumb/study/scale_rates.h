// The second half of [scale]: the best learning rate against width, with and without µP.
#pragma once

#include <vector>

#include "plumb/study/part.h"

namespace plumb {

/// Runs of the first scheme at each of scale.rate_widths and scale.learning_rates, with both parametrizations; empty
/// without learning rates.
std::vector<MeasurementRequest> scale_rate_requests(StudyContext& context, const ScaleStudy& part);

/// Adds figures of the sweeps and best rates, and verdicts on the claims of Yang et al. 2022; nothing without learning
/// rates.
void report_scale_rates(StudyContext& context, const ScaleStudy& part, PartResult& result);

}  // namespace plumb
