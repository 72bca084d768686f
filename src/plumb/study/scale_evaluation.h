// [scale] with tasks: benchmark scores of models of growing size, by category.
#pragma once

#include <functional>
#include <vector>

#include "plumb/study/scale_family.h"

namespace plumb {

/// Plans the evaluation of each model of the first scheme, from smallest to largest, on scale.tasks, without examples
/// in prompts, as `plumb evaluate` does; nothing without tasks. Throws Error on unknown tasks, tasks without an
/// accuracy, models that cannot generate text or read it backward, and items that the models cannot read. Returns what
/// adds a figure, a table and a sentence on the accuracies by category to the report, and a verdict on the claim of Rae
/// et al. 2021 if reading comprehension and reasoning are among the categories.
std::function<void(PartResult&)> plan_scale_evaluation(PartPlan& plan, StudyContext& context, const ScaleStudy& part,
                                                       const std::vector<ScaleMember>& members);

}  // namespace plumb
