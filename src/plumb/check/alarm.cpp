#include "plumb/check/alarm.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plumb/base/progress.h"

namespace plumb::check {

Registry<Alarm>& alarms() {
  static Registry<Alarm> registry("alarm",
                                  {.title = "Alarms",
                                   .key = "plumb check",
                                   .before = "`plumb check` measures them before training and says which are beyond "
                                             "their thresholds; [check.md](check.md)."});
  return registry;
}

std::vector<Reason> all_reasons(const Evidence& evidence, const std::function<bool()>& stop, bool along_training) {
  std::vector<Reason> reasons;
  for (const auto& [name, entry] : alarms().entries()) {
    if (stop && stop()) break;
    if (along_training && !entry.make.along_training) continue;
    try {
      for (Reason& reason : entry.make.look(evidence)) {
        reason.alarm = name;
        reasons.push_back(std::move(reason));
      }
    } catch (const Error& error) {
      warn(fmt::format("{} could not be measured: {}", entry.summary, error.what()));
    }
  }
  std::stable_partition(reasons.begin(), reasons.end(), [](const Reason& reason) { return reason.raised; });
  return reasons;
}

}  // namespace plumb::check
