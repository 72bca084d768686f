// Whether the schedule lets the run learn: its largest rate, and warm-up against its length.
#include <fmt/format.h>

#include "plumb/check/alarm.h"
#include "plumb/optim/schedule.h"

namespace plumb::check {
namespace {

Reason look_at_warm_up(const Evidence& evidence) {
  const TrainConfig& train = evidence.config;
  const bool configured =
      train.warm_up.unit() == Duration::Unit::steps && has_schedule_factor(train.schedule, "linear_warmup");
  const int64_t warm_up = configured ? train.warm_up.in_steps() : evidence.warm_up;
  Reason reason{.value = static_cast<double>(warm_up), .threshold = static_cast<double>(evidence.steps)};
  reason.raised = warm_up >= evidence.steps && warm_up > 1;
  reason.text =
      reason.raised
          ? fmt::format("the warm-up of {} steps is not shorter than the run of {}, so the planned rate is never held",
                        warm_up, evidence.steps)
          : fmt::format("the warm-up takes {} of {} steps", warm_up, evidence.steps);
  reason.advice = "a train.warm_up of a tenth of the run or less";
  return reason;
}

Reason look_at_rate(const Evidence& evidence) {
  Reason reason{.value = evidence.peak_rate, .threshold = 0};
  reason.raised = !(evidence.peak_rate > 0);
  reason.text = fmt::format("the largest learning rate of the run is {:.3g}", evidence.peak_rate);
  reason.advice = "a train.learning_rate above 0";
  return reason;
}

std::vector<Reason> look_at_schedule(const Evidence& evidence) {
  return {look_at_rate(evidence), look_at_warm_up(evidence)};
}

[[maybe_unused]] const bool kScheduleLookedAt = alarms().add(
    "schedule", "the largest learning rate, and the warm-up against the length of the run", "", {look_at_schedule});

}  // namespace
}  // namespace plumb::check
