// Linear warm-up (Vaswani et al. 2017, arXiv 1706.03762): min(1, step/warm_up).
#include <algorithm>

#include "plumb/optim/schedule.h"

namespace plumb {
namespace {

const bool kLinearWarmupRegistered = schedule_factors().add(
    "linear_warmup", "min(1, step/warm_up); 1 if warm_up is 0", "Vaswani et al. 2017, arXiv 1706.03762",
    [](const ScheduleFrame& frame, const Options&) -> ScheduleFactor {
      const auto length = static_cast<double>(std::max<int64_t>(frame.warm_up, 1));
      return [length](int64_t step) { return std::min(1.0, static_cast<double>(step) / length); };
    });

}  // namespace
}  // namespace plumb
