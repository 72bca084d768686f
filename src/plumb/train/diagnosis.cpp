#include "plumb/train/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/run/config.h"
#include "plumb/train/alarm.h"

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
    found.push_back(
        {.text = fmt::format("the median norm of the gradient was {:.3g}", *usual),
         .advice = fmt::format("train.clip_norm = {:.2g}, twice the median norm of the gradient", 2 * *usual)});
  }
  return found;
}

}  // namespace

bool finite_on(const WatchedRun& run) {
  const at::NoGradGuard no_graph;
  if (!run.model.parameters().flat().isfinite().all().item<bool>()) return false;
  return std::all_of(run.batches.begin(), run.batches.end(), [&run](const Batch& batch) {
    ForwardContext context(Pass::measurement);
    return std::isfinite(run.task.loss(run.model, batch, {run.config.label_smoothing}, context).value.item<double>());
  });
}

std::vector<std::string> diagnose(const DivergedRun& diverged) {
  std::vector<Finding> findings;
  for (const auto& [name, entry] : alarms().entries()) {
    if (entry.make.explain == nullptr) continue;
    try {
      for (Finding& finding : entry.make.explain(diverged)) findings.push_back(std::move(finding));
    } catch (const Error&) {  // cannot be measured
    }
  }
  std::vector<Finding> rises = find_rises(diverged);
  const auto explains = [](const Finding& finding) { return !finding.advice.empty(); };
  for (std::vector<Finding>* each : {&rises, &findings}) std::stable_partition(each->begin(), each->end(), explains);
  rises.insert(rises.end(), findings.begin(), findings.end());
  std::vector<std::string> all, advice;
  for (const Finding& finding : rises) {
    all.push_back(finding.text);
    if (explains(finding)) advice.push_back("try: " + finding.advice);
  }
  all.insert(all.end(), advice.begin(), advice.end());
  return all;
}

}  // namespace plumb
