// A delay: 0 for the first steps, in which an optimizer's moments settle while the weights stay as they are.
#include "plumb/optim/schedule.h"

namespace plumb {
namespace {

struct DelayOptions {
  int64_t length = 100;
};
void describe(Fields& field, DelayOptions& options) {
  field("length", options.length, "the first steps, in which the rate is 0", count_from(1));
}

const bool kDelayRegistered = schedule_factors().add(
    "delay", "0 in the first steps, which leave the weights as they are but feed the optimizer's moments; 1 after", "",
    [](const ScheduleFrame&, const Options& given) -> ScheduleFactor {
      return [length = given.as<DelayOptions>().length](int64_t step) { return step > length ? 1.0 : 0.0; };
    },
    Options(DelayOptions{}));

}  // namespace
}  // namespace plumb
