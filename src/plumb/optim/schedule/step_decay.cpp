// Decay at given times (Xiong et al. 2020, arXiv 2002.04745): factor to the power of the number of times in `at`
// that have passed.
#include <algorithm>
#include <cmath>

#include "plumb/optim/schedule.h"

namespace plumb {
namespace {

struct StepDecayOptions {
  std::vector<Duration> at;
  double factor = 0.1;
};
void describe(Fields& field, StepDecayOptions& options) {
  field("at", options.at, "when the rate decays: steps, or durations such as \"2e\"", at_least(0));
  field("factor", options.factor, "multiplies the rate each time", at_least(0));
}

const bool kStepDecayRegistered = schedule_factors().add(
    "step_decay", "factor to the power of the number of times in `at` that have passed",
    "Xiong et al. 2020, arXiv 2002.04745",
    [](const ScheduleFrame&, const Options& given) -> ScheduleFactor {
      const auto& options = given.as<StepDecayOptions>();
      return [options](int64_t step) {
        const auto passed = std::count_if(options.at.begin(), options.at.end(),
                                          [step](const Duration& at) { return step > at.in_steps(); });
        return std::pow(options.factor, static_cast<double>(passed));
      };
    },
    Options(StepDecayOptions{}));

}  // namespace
}  // namespace plumb
