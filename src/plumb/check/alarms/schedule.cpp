// Whether the schedule lets the run learn: its largest rate, and warm-up against its length.
#include <fmt/format.h>

#include "plumb/optim/schedule.h"
#include "plumb/train/alarm.h"

namespace plumb::check {
namespace {

Finding measure_warm_up(const PlannedRun& planned) {
  const TrainConfig& train = planned.config;
  const bool configured =
      train.warm_up.unit() == Duration::Unit::steps && has_schedule_factor(train.schedule, "linear_warmup");
  const int64_t warm_up = configured ? train.warm_up.in_steps() : planned.warm_up;
  Finding finding{.value = static_cast<double>(warm_up), .threshold = static_cast<double>(planned.steps)};
  finding.raised = warm_up >= planned.steps && warm_up > 1;
  finding.text =
      finding.raised
          ? fmt::format("the warm-up of {} steps is not shorter than the run of {}, so the planned rate is never held",
                        warm_up, planned.steps)
          : fmt::format("the warm-up takes {} of {} steps", warm_up, planned.steps);
  finding.advice = "a train.warm_up of a tenth of the run or less";
  return finding;
}

Finding measure_rate(const PlannedRun& planned) {
  Finding finding{.value = planned.peak_rate, .threshold = 0};
  finding.raised = !(planned.peak_rate > 0);
  finding.text = fmt::format("the largest learning rate of the run is {:.3g}", planned.peak_rate);
  finding.advice = "a train.learning_rate above 0";
  return finding;
}

std::vector<Finding> measure_schedule(const PlannedRun& planned) {
  return {measure_rate(planned), measure_warm_up(planned)};
}

[[maybe_unused]] const bool kScheduleAlarm = alarms().add(
    "schedule", "the largest learning rate, and the warm-up against the length of the run", "", {measure_schedule});

}  // namespace
}  // namespace plumb::check
