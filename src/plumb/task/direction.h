// In which direction a model reads text: forward, or backward, from the end of each sequence to its beginning (ULMFiT:
// Howard & Ruder 2018, arXiv 1801.06146, section 3.3, averages two models, one of each).
#pragma once

#include <string>

#include "plumb/task/task.h"

namespace plumb {

/// Whether `direction`, the value of the key `direction` of a task's section, is "backward". Throws Error unless it is
/// that or "forward".
bool is_backward(const std::string& task, const std::string& direction);

/// Whether [task] is that of a model which reads backward: a language model that predicts what precedes a text, or a
/// classifier.
bool reads_backward(const TaskConfig& config);

/// Makes the classification of [task] one that reads backward.
void classify_backward(TaskConfig& config);

}  // namespace plumb
