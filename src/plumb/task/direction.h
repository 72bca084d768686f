// The direction in which a model reads text: forward, or backward, from the end of each sequence to its beginning
// (ULMFiT averages a forward and a backward model: Howard & Ruder 2018, arXiv 1801.06146, section 3.3).
#pragma once

#include "plumb/task/task.h"

namespace plumb {

/// The values of the key `direction` in a task's section.
Domain directions();

/// Whether [task] configures a language model or classifier that reads backward.
bool reads_backward(const TaskConfig& config);

/// Sets the direction of the classification task in [task] to backward.
void classify_backward(TaskConfig& config);

}  // namespace plumb
