#include "plumb/check/schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "plumb/base/error.h"
#include "plumb/check/subject.h"
#include "plumb/train/corpora.h"
#include "plumb/train/step_source.h"
#include "plumb/train/timeline.h"

namespace plumb::check {

PlannedSchedule planned_schedule(const Subject& subject) {
  const TrainConfig& given = subject.config.train;
  const auto train = subject.task->dataset("train");
  const ExampleCosts costs(train->size(), [&](int64_t example) { return train->cost(example); });
  const PlanSettings settings = plan_settings(given, mixture_of(given, *train), train->stream());
  Timeline timeline = make_timeline(costs, given, settings, subject.config.model.kind);
  const TrainConfig config = resolved(given, timeline);
  const Schedule schedule = make_schedule(config, width_of(subject.config.model));
  PlannedSchedule planned;
  planned.steps = timeline.run_steps();
  const int64_t done = subject.first_step;
  if (planned.steps <= done) {
    throw Error(fmt::format("the run ends at step {}, which it has reached", planned.steps),
                "raise train.steps or train.epochs with --set");
  }
  const auto rate = [&](int64_t step) { return schedule(done + step); };
  planned.steps -= done;
  for (int64_t step = 1; step <= planned.steps; ++step) planned.peak = std::max(planned.peak, rate(step));
  int64_t first = 1;
  while (first < planned.steps && rate(first) < 0.99 * planned.peak) ++first;
  planned.warm_up = first == 1 || done > 0 ? 0 : first;
  if (planned.warm_up > 0 && has_schedule_factor(config.schedule, "linear_warmup"))
    planned.warm_up = std::min(config.warm_up.in_steps(), planned.steps);
  planned.factor = given.learning_rate > 0 && planned.peak > 0 ? planned.peak / given.learning_rate : 1;
  return planned;
}

}  // namespace plumb::check
