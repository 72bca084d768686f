// The second half of [scale]: the best learning rate against width, with and without µP.
#pragma once

#include <functional>

#include "plumb/study/scale_family.h"

namespace plumb {

/// Plans runs of the first scheme at each of scale.rate_widths and scale.learning_rates, with both parametrizations;
/// none without learning rates. Returns what adds figures of the sweeps and best rates, and verdicts on the claims of
/// Yang et al. 2022, to the report.
std::function<void(PartResult&)> plan_scale_rates(PartPlan& plan, StudyContext& context, const ScaleStudy& part);

}  // namespace plumb
