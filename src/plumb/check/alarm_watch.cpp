// [watch] "alarms": those of plumb check that tell, along a run, that it has stopped learning.
#include <fmt/format.h>

#include <set>

#include "plumb/analysis/curvature/hessian.h"
#include "plumb/base/progress.h"
#include "plumb/run/watch.h"
#include "plumb/train/alarm.h"

namespace plumb::check {
namespace {

struct AlarmMeasurement {
  std::vector<Finding> findings;  // raised and not
};
void describe(Fields& field, AlarmMeasurement& measurement) { field.sections("reasons", measurement.findings); }

class AlarmWatch final : public Watch {
 public:
  [[nodiscard]] Described measure(const WatchedRun& run) override {
    const MeanLoss mean = mean_loss(run.model, run.batches, run.config.label_smoothing, loss_of(run.task));
    const PlannedRun planned{.config = run.config,
                             .task = run.task,
                             .model = run.model,
                             .train = run.train_set,
                             .batches = run.batches,
                             .gradient = run.model.parameters().split(mean.gradient),
                             .baselines = {},
                             .peak_rate = run.learning_rate};
    AlarmMeasurement found{all_findings(planned, {}, true)};
    std::set<std::string> raised;
    for (const Finding& finding : found.findings) {
      if (!finding.raised || !raised.insert(finding.alarm).second || said_.contains(finding.alarm)) continue;
      say(fmt::format("step {}: {}; {}", run.step, finding.text, finding.advice));
    }
    said_ = std::move(raised);
    return Described(std::move(found));
  }

 private:
  std::set<std::string> said_;  // raised at the last measurement
};

[[maybe_unused]] const bool kAlarmsRegistered =
    watches().add("alarms",
                  "the alarms of plumb check that apply to any step, each with value, threshold and place; said once "
                  "when one is raised",
                  "", watch_factory<AlarmWatch>());

}  // namespace
}  // namespace plumb::check
