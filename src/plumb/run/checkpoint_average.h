// The average of several checkpoints of a run, as a new model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace plumb {

/// The last `count` checkpoints of a run, in step order. Throws Error if the run has fewer, or if count < 1.
std::vector<std::filesystem::path> last_checkpoints(const std::filesystem::path& run, int64_t count);

/// The `count` checkpoints with the best values of train.best_metric, best first, among those that the run still has
/// and that have a finite value at their step. Throws Error if there are fewer, if count < 1, and, for one of the
/// task's own metrics, if the run's data have moved.
std::vector<std::filesystem::path> best_checkpoints(const std::filesystem::path& run, int64_t count);

/// Averages the evaluated weights and the buffers of one or more distinct checkpoints in float64 (Vaswani et al. 2017,
/// arXiv 1706.03762, section 6.1). The mean satisfies the model's constraints on its weights. Writes it to `out` with
/// the run's configuration, so that it can be used like a run; it cannot be trained further. Throws Error if `out`
/// contains anything but an earlier average, and if a checkpoint does not fit the run's model.
void average_checkpoints(const std::filesystem::path& run, const std::vector<std::filesystem::path>& checkpoints,
                         const std::filesystem::path& out);

}  // namespace plumb
