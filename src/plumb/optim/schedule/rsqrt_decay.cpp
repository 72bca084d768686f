// Inverse square root decay (Vaswani et al. 2017, arXiv 1706.03762): √(s/max(step, s)), where s is the step at which
// the decay begins.
#include <algorithm>
#include <cmath>

#include "plumb/optim/schedule.h"

namespace plumb {
namespace {

const bool kRsqrtDecayRegistered = schedule_factors().add(
    "rsqrt_decay",
    "√(s/max(step, s)): 1 at the peak; in tensor2tensor 1/√max(step, s), so that a constant c from there is a "
    "`train.learning_rate` of c/√s",
    "Vaswani et al. 2017, arXiv 1706.03762", [](const ScheduleFrame& frame, const Options&) -> ScheduleFactor {
      return [begin = frame.decay_begin()](int64_t step) {
        return std::sqrt(static_cast<double>(begin) / static_cast<double>(std::max(step, begin)));
      };
    });

}  // namespace
}  // namespace plumb
