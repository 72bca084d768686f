// The average of several checkpoints of a run, as a new model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace plumb {

/// The last `count` checkpoints of a run, in the order of their steps. Throws Error if it has fewer.
std::vector<std::filesystem::path> last_checkpoints(const std::filesystem::path& run, int64_t count);

/// The `count` checkpoints with the best values of train.best_metric, the best first, among all that the run still has
/// and at whose step it was computed. Throws Error if these are fewer, and, for a metric of the task itself, if the
/// run's data are not where they were.
std::vector<std::filesystem::path> best_checkpoints(const std::filesystem::path& run, int64_t count);

/// Averages the weights that the checkpoints would be evaluated with, and buffers, in float64 (Vaswani et al. 2017,
/// arXiv 1706.03762, section 6.1). The mean meets any constraint of the model on its weights. Writes it to `out` with
/// the run's configuration, so that it can be used like a run; it cannot be trained further. Throws Error if `out` has
/// anything but an earlier average in it, and if a checkpoint does not fit the run's model.
void average_checkpoints(const std::filesystem::path& run, const std::vector<std::filesystem::path>& checkpoints,
                         const std::filesystem::path& out);

}  // namespace plumb
