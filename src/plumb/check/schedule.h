// What the schedule of a planned run says: its peak rate, and when it is reached.
#pragma once

#include <cstdint>

namespace plumb::check {

struct Subject;

struct PlannedSchedule {
  double peak = 0;      // the largest learning rate
  double factor = 1;    // peak / train.learning_rate
  int64_t warm_up = 0;  // of a linear warm-up; otherwise the step at which 99 % of the peak are reached, 0: the first
  int64_t steps = 0;    // of the run
};

/// Of the subject's run. Durations in tokens and epochs are converted with its batch plan.
PlannedSchedule planned_schedule(const Subject& subject);

}  // namespace plumb::check
