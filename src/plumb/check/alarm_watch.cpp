// [watch] "alarms": those of plumb check that tell, along a run, that it has stopped learning.
#include <fmt/format.h>

#include <set>

#include "plumb/base/progress.h"
#include "plumb/check/alarm.h"
#include "plumb/check/gradient.h"
#include "plumb/run/watch.h"

namespace plumb::check {
namespace {

struct AlarmMeasurement {
  std::vector<Reason> reasons;  // raised and not
};
void describe(Fields& field, AlarmMeasurement& measurement) { field.sections("reasons", measurement.reasons); }

class AlarmWatch final : public Watch {
 public:
  [[nodiscard]] Described measure(const WatchedRun& run) override {
    const Evidence evidence{
        .config = run.config,
        .task = run.task,
        .model = run.model,
        .train = run.train_set,
        .batches = run.batches,
        .gradient = gradient_of(run.task, run.config.label_smoothing, run.model, run.batches, loss_),
        .yardstick = {},
        .peak_rate = run.learning_rate};
    AlarmMeasurement found{all_reasons(evidence, {}, true)};
    std::set<std::string> raised;
    for (const Reason& reason : found.reasons) {
      if (!reason.raised || !raised.insert(reason.alarm).second || said_.contains(reason.alarm)) continue;
      say(fmt::format("step {}: {}; {}", run.step, reason.text, reason.advice));
    }
    said_ = std::move(raised);
    return Described(std::move(found));
  }

 private:
  double loss_ = 0;
  std::set<std::string> said_;  // raised at the last measurement
};

[[maybe_unused]] const bool kAlarmsRegistered =
    watches().add("alarms",
                  "the alarms of plumb check that apply to any step, each with value, threshold and place; said once "
                  "when one is raised",
                  "", watch_factory<AlarmWatch, AlarmMeasurement>());

}  // namespace
}  // namespace plumb::check
