// In which direction a language model reads.
#pragma once

#include "plumb/task/task.h"

namespace plumb {

/// Whether [task] is that of a backward language model, which predicts what precedes a text.
bool reads_backward(const TaskConfig& config);

}  // namespace plumb
