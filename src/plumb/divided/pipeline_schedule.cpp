#include "plumb/divided/pipeline_schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"

namespace plumb {
namespace {

/// The passes of one kind in the order of a stage: groups of as many micro-batches as there are stages go through the
/// chunks, the first chunk first in forward passes, the last in backward ones. All groups are complete: the last one
/// may have more micro-batches than there are.
std::vector<StageTask> in_groups(StageTask::Pass pass, int64_t stages, int64_t chunks, int64_t micro_batches) {
  std::vector<StageTask> tasks;
  for (int64_t begin = 0; begin < micro_batches; begin += stages) {
    for (int64_t turn = 0; turn < chunks; ++turn) {
      const int64_t chunk = pass == StageTask::Pass::forward ? turn : chunks - 1 - turn;
      for (int64_t i = 0; i < stages; ++i) tasks.push_back({pass, begin + i, chunk});
    }
  }
  return tasks;
}

}  // namespace

PipelineSchedule make_pipeline_schedule(const std::string& name, int64_t stages, int64_t chunks,
                                        int64_t micro_batches) {
  const bool forward_first = name == "gpipe";
  if (!forward_first && name != "1f1b")
    throw Error(fmt::format("unknown schedule of a pipeline '{}'", name), "known: 1f1b, gpipe");
  if (forward_first && chunks > 1) {
    throw Error(fmt::format("the schedule gpipe has one run of layers in each stage, not {}", chunks),
                "choose 1f1b, or one");
  }
  PipelineSchedule schedule{stages, chunks, micro_batches, {}};
  const std::vector<StageTask> forward = in_groups(StageTask::Pass::forward, stages, chunks, micro_batches);
  const std::vector<StageTask> backward = in_groups(StageTask::Pass::backward, stages, chunks, micro_batches);
  for (int64_t stage = 0; stage < stages; ++stage) {
    const int64_t after = stages - 1 - stage;
    const int64_t depth = forward_first ? std::ssize(forward) : chunks == 1 ? after : 2 * after + (chunks - 1) * stages;
    const auto ahead = static_cast<size_t>(std::min(depth, std::ssize(forward)));
    std::vector<StageTask> tasks(forward.begin(), forward.begin() + static_cast<std::ptrdiff_t>(ahead));
    for (size_t i = 0; i < backward.size(); ++i) {
      if (ahead + i < forward.size()) tasks.push_back(forward[ahead + i]);
      tasks.push_back(backward[i]);
    }
    std::erase_if(tasks, [&](const StageTask& task) { return task.micro_batch >= micro_batches; });
    schedule.tasks.push_back(std::move(tasks));
  }
  return schedule;
}

double pipeline_bubble(int64_t stages, int64_t chunks, int64_t micro_batches) {
  return static_cast<double>(stages - 1) / static_cast<double>(chunks * micro_batches + stages - 1);
}

}  // namespace plumb
