#include "plumb/run/best_metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/text.h"

namespace plumb {

bool has_slow_metrics(const Task& task) {
  const Metrics quick = task.metrics(task.zero());
  const std::vector<MetricInfo> all = task.metric_infos();
  return std::any_of(all.begin(), all.end(),
                     [&](const MetricInfo& info) { return info.left_out_by.empty() && !quick.get(info.name); });
}

BestMetric best_metric_of(const TrainConfig& config, const Task& task) {
  const Metrics quick = task.metrics(task.zero());  // the metrics that one pass over the split yields
  std::vector<std::string> names;
  for (const MetricInfo& info : task.metric_infos()) {
    const std::string name = info.name == "loss" || info.name == "nll" ? "valid_" + info.name : info.name;
    names.push_back(name);
    if (name != config.best_metric) continue;
    const bool is_slow = !quick.get(info.name).has_value();
    if (!info.left_out_by.empty()) {
      throw Error(fmt::format("train.best_metric = \"{}\" is never computed with {}", name, info.left_out_by),
                  "change that setting, or choose another train.best_metric");
    }
    if (is_slow && config.score_every.amount() < 0) {
      throw Error(fmt::format("train.best_metric = \"{}\" is never computed with train.score_every = {}", name,
                              config.score_every.text()),
                  "set train.score_every to the steps between two values");
    }
    if (is_slow && config.score_every.is_zero() && config.patience > 0) {
      throw Error(fmt::format("train.patience = {} has no effect: train.best_metric = \"{}\" is computed only at the "
                              "end with train.score_every = 0",
                              config.patience, name),
                  "set train.score_every to the steps between two values, or train.patience to 0");
    }
    return {name, info.larger_is_better, is_slow};
  }
  throw Error(fmt::format("train.best_metric = \"{}\" is not a metric of the task {}", config.best_metric, task.name()),
              "available: " + join(names));
}

}  // namespace plumb
