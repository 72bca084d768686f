// The learning rate itself, constant (tensor2tensor, utils/learning_rate.py).
#include "plumb/optim/schedule.h"

namespace plumb {
namespace {

const bool kConstantRegistered =
    schedule_factors().add("constant", "`train.learning_rate`", "tensor2tensor, utils/learning_rate.py",
                           [](const ScheduleFrame& frame, const Options&) -> ScheduleFactor {
                             return [rate = frame.learning_rate](int64_t) { return rate; };
                           });

}  // namespace
}  // namespace plumb
