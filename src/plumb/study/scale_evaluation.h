// [scale] with tasks: benchmark scores of models of growing size, by category.
#pragma once

#include <vector>

#include "plumb/study/part.h"

namespace plumb {

/// Evaluates every model of the first scheme on scale.tasks, without examples in prompts, as `plumb evaluate` does;
/// empty without tasks. Throws Error on unknown tasks, tasks without an accuracy, models that cannot generate text or
/// read it backward, and items that the models cannot read.
std::vector<MeasurementRequest> scale_evaluation_requests(StudyContext& context, const ScaleStudy& part);

/// Adds a figure, a table and a sentence on the accuracies by category, and a verdict on the claim of Rae et al. 2021
/// if reading comprehension and reasoning are among the categories; nothing without tasks.
void report_scale_evaluation(StudyContext& context, const ScaleStudy& part, PartResult& result);

}  // namespace plumb
