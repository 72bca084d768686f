#include "plumb/train/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/error.h"
#include "plumb/run/config.h"

namespace plumb {
namespace {

/// The last spike of each series that rose, earliest first.
std::vector<Spike> risen(const TroubleJudge& judge) {
  std::vector<Spike> all;
  const auto add = [&all](const SpikeSeries& series) {
    if (series.last()) all.push_back(*series.last());
  };
  for (const SpikeSeries& each : judge.updates()) add(each);
  add(judge.gradient_norm());
  add(judge.loss());
  std::stable_sort(all.begin(), all.end(), [](const Spike& a, const Spike& b) {
    return a.since != b.since ? a.since < b.since : a.deviations > b.deviations;
  });
  return all;
}

/// Which series rose first, how much later the loss rose, and whether a clipping norm may help.
std::vector<Finding> find_rises(const DivergedRun& diverged) {
  const std::vector<Spike> all = risen(diverged.judge);
  if (all.empty()) return {};
  const Spike& first = all.front();
  Finding finding;
  finding.text =
      fmt::format("first to rise was the {}: far above its median since step {}, {:.3g} times the median in step {}",
                  first.series, first.since, first.value / first.before, first.step);
  const auto& loss = diverged.judge.loss().last();
  if (loss && first.series != "loss") {
    const int64_t later = loss->since - first.since;
    finding.text += later > 0 ? fmt::format("; the loss rose {} step{} later", later, later == 1 ? "" : "s")
                              : std::string("; the loss rose in the same step");
  }
  constexpr std::string_view kUpdate = "update of ";
  if (first.series.starts_with(kUpdate)) {
    finding.advice = fmt::format("a lower learning_rate_factor for {} alone ([[train.groups]])",
                                 first.series.substr(kUpdate.size()));
  }
  std::vector<Finding> found{finding};
  const std::optional<double> usual = diverged.judge.gradient_norm().median();
  const double limit = diverged.run.config.clip_norm;
  if (diverged.judge.gradient_norm().last() && usual && !(limit > 0 && limit <= 2 * *usual)) {
    found.push_back({fmt::format("the median norm of the gradient was {:.3g}", *usual),
                     fmt::format("train.clip_norm = {:.2g}, twice the median norm of the gradient", 2 * *usual)});
  }
  return found;
}

}  // namespace

Registry<Diagnosis>& diagnoses() {
  static Registry<Diagnosis> registry("diagnosis");
  return registry;
}

bool finite_on(const WatchedRun& run) {
  const at::NoGradGuard no_graph;
  if (!run.model.parameters().flat().isfinite().all().item<bool>()) return false;
  return std::all_of(run.batches.begin(), run.batches.end(), [&run](const Batch& batch) {
    ForwardContext context(Pass::measurement);
    return std::isfinite(run.task.loss(run.model, batch, {run.config.label_smoothing}, context).value.item<double>());
  });
}

std::vector<std::string> diagnose(const DivergedRun& diverged) {
  std::vector<std::string> reasons, others, advice;
  const auto take = [&](const Diagnosis& measure) {
    try {
      for (const Finding& finding : measure(diverged)) {
        (finding.advice.empty() ? others : reasons).push_back(finding.text);
        if (!finding.advice.empty()) advice.push_back(finding.advice);
      }
    } catch (const Error&) {  // cannot be measured
    }
  };
  take(find_rises);
  reasons.insert(reasons.end(), others.begin(), others.end());  // find_rises comes first as a whole
  others.clear();
  for (const auto& [name, entry] : diagnoses().entries()) take(entry.make);
  std::vector<std::string> all = std::move(reasons);
  all.insert(all.end(), others.begin(), others.end());
  for (const std::string& each : advice) all.push_back("try: " + each);
  return all;
}

}  // namespace plumb
