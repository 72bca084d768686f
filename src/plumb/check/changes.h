// Changes of a configuration that does not train, tried rather than only advised.
#pragma once

#include <functional>

#include "plumb/check/result.h"
#include "plumb/check/subject.h"

namespace plumb::check {

/// Trials of changed configurations at the planned rate, each as long as the longest trial in `result`, which has what
/// the search has found: smaller values, Pre-LN, and a smaller β₂ of Adam after a collapse, normalized queries and keys
/// after a divergence. None for a run that trains, or that begins with trained weights. Adds the trials and their cost
/// to `result`, and to the answer the change that trains best. `most_gradients`: of all of them. `stop`: true ends
/// them.
void try_changes(const Subject& subject, int64_t most_gradients, const std::function<bool()>& stop,
                 CheckResult& result);

}  // namespace plumb::check
