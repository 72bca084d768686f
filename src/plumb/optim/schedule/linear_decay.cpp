// Linear decay (tensor2tensor, utils/learning_rate.py): 1 − (1 − floor)·progress.
#include "plumb/optim/schedule.h"

namespace plumb {
namespace {

const bool kLinearDecayRegistered = schedule_factors().add(
    "linear_decay", "from 1 at s to `train.decay_floor` at step `train.steps`, linearly",
    "tensor2tensor, utils/learning_rate.py", [](const ScheduleFrame& frame, const Options&) -> ScheduleFactor {
      return [frame](int64_t step) { return 1 - (1 - frame.decay_floor) * frame.decay_progress(step); };
    });

}  // namespace
}  // namespace plumb
