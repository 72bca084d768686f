// Settings of new runs that several tasks share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/task/dataset.h"

namespace plumb {

/// For tasks that are learned in passes over the data (Task::usual_settings): AdamW with clipped gradients, a warm-up
/// of a tenth of the run, and a cosine decay to a tenth of the peak. The run has this many epochs or, if that is less,
/// 40 million tokens.
std::vector<std::string> usual_passes(int64_t epochs, const Dataset& train);

}  // namespace plumb
