// The validation loss of models before training.
#pragma once

#include <string>

#include "plumb/study/part.h"

namespace plumb {

/// A measurement whose result is a list, [seed], of the mean negative log-likelihood of the validation split, with the
/// weights that runs of this model start from, for the study's seed and those that follow; null without that split.
/// `name` identifies the model within the study.
MeasurementRequest initial_loss_request(StudyContext& context, const std::string& name, const ModelConfig& config,
                                        int64_t seeds);

}  // namespace plumb
