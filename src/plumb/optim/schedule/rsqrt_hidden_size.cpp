// 1/√d for a model of width d (tensor2tensor, utils/learning_rate.py).
#include <cmath>

#include "plumb/optim/schedule.h"

namespace plumb {
namespace {

const bool kRsqrtHiddenSizeRegistered = schedule_factors().add(
    "rsqrt_hidden_size", "1/√d_model", "tensor2tensor, utils/learning_rate.py",
    [](const ScheduleFrame& frame, const Options&) -> ScheduleFactor {
      return [value = 1 / std::sqrt(static_cast<double>(frame.hidden_size))](int64_t) { return value; };
    });

}  // namespace
}  // namespace plumb
