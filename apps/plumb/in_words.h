// What the tables of `plumb probe` and `plumb spectrum` mean, in sentences.
#pragma once

#include <string>

#include "plumb/analysis/curvature/spectrum_json.h"
#include "plumb/analysis/initialization.h"
#include "plumb/analysis/probe.h"

namespace plumb::app {

/// How the gradient changes over each stack, and whether it does so as theory has it; "" for stacks of one layer.
std::string in_words(const TheoryReport& theory, const ModelDepth& depth, int64_t seeds);

/// What the critical rate of an optimizer's first step limits; "" if none was found.
std::string in_words(const FirstStepReport& report);

/// What the extremes and the bulk say about training.
std::string in_words(const Spectrum& spectrum);

}  // namespace plumb::app
