// How much a study has to do, before it begins.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plumb/study/plan.h"

namespace plumb {

using PartPlans = std::vector<std::pair<std::string, PartPlan>>;  // by name, in the order of measurement

/// "18 measurements to make: 2 of gradients, 16 of training; about 40 minutes": those that are not stored, of each
/// part, and the time that their work takes with `jobs` at once, at the speed of one gradient, which is measured. Empty
/// if all are stored.
std::string forecast(const StudyContext& context, const PartPlans& plans, int64_t jobs);

/// "less than a minute", "about 40 minutes", "about 3 hours".
std::string rough_time(double seconds);

}  // namespace plumb
