// The metrics reported for a classifier.
#pragma once

#include "plumb/metrics/classification.h"
#include "plumb/task/metrics.h"

namespace plumb {

/// accuracy, f1 (macro) and mcc (Matthews) of a confusion matrix and, unless it is empty, the bounds of their 95%
/// intervals as accuracy_low, accuracy_high and so on: Wilson's for accuracy, the bootstrap's for the others.
Metrics classification_metrics(const Confusion& confusion);

}  // namespace plumb
