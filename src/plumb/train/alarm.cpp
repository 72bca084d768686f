#include "plumb/train/alarm.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plumb/base/progress.h"

namespace plumb {

Registry<Alarm>& alarms() {
  static Registry<Alarm> registry("alarm",
                                  {.title = "Alarms",
                                   .key = "plumb check",
                                   .before = "`plumb check` measures them before training and says which are beyond "
                                             "their thresholds; a run that diverges is explained by some of them; "
                                             "[check.md](check.md)."});
  return registry;
}

std::vector<Finding> all_findings(const PlannedRun& run, const std::function<bool()>& stop, bool along_training) {
  std::vector<Finding> findings;
  for (const auto& [name, entry] : alarms().entries()) {
    if (stop && stop()) break;
    if (entry.make.measure == nullptr || (along_training && !entry.make.along_training)) continue;
    try {
      for (Finding& finding : entry.make.measure(run)) {
        finding.alarm = name;
        findings.push_back(std::move(finding));
      }
    } catch (const Error& error) {
      warn(fmt::format("{} could not be measured: {}", entry.summary, error.what()));
    }
  }
  std::stable_partition(findings.begin(), findings.end(), [](const Finding& finding) { return finding.raised; });
  return findings;
}

}  // namespace plumb
