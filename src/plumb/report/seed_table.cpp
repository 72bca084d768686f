#include "plumb/report/seed_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plumb/base/json.h"
#include "plumb/base/text.h"
#include "plumb/report/report_parts.h"
#include "plumb/run/run_table.h"

namespace plumb {
namespace {

constexpr const char* kSeed = "train.seed";
constexpr const char* kBestLoss = "loss";

using Setting = std::pair<std::string, std::string>;

std::vector<Setting> settings_without_seed(const RunSummary& run) {
  std::vector<Setting> settings = run.settings;
  std::erase_if(settings, [](const Setting& setting) { return setting.first == kSeed; });
  return settings;
}

std::vector<std::string> keys_of_rows(const std::vector<RunSummary>& runs) {
  std::vector<std::string> keys = differing_keys(runs);
  std::erase(keys, kSeed);
  return keys;
}

/// The best validation loss, then the tasks' metrics except ends of intervals.
std::vector<std::string> metrics_of(const std::vector<RunSummary>& runs) {
  std::vector<std::string> names = task_metrics(runs);
  std::erase_if(names, [](const std::string& name) { return name.ends_with("_low") || name.ends_with("_high"); });
  names.insert(names.begin(), kBestLoss);
  return names;
}

}  // namespace

std::vector<std::vector<RunSummary>> runs_by_configuration(const std::vector<RunSummary>& runs) {
  std::vector<std::vector<RunSummary>> groups;
  for (const RunSummary& run : runs) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const std::vector<RunSummary>& group) {
      return !run.settings.empty() && settings_without_seed(group.front()) == settings_without_seed(run);
    });
    if (same == groups.end()) {
      groups.push_back({run});
    } else {
      same->push_back(run);
    }
  }
  return groups;
}

Interval over_runs(const std::vector<RunSummary>& runs, const std::string& metric) {
  std::vector<double> values;
  for (const RunSummary& run : runs) {
    const std::optional<double> value = metric == kBestLoss ? run.best_valid_nll : run.metrics.get(metric);
    if (value && std::isfinite(*value)) values.push_back(*value);
  }
  return values.empty() ? Interval{} : confidence_interval(values);
}

std::string seed_table_text(const std::vector<RunSummary>& runs) {
  const std::vector<std::string> keys = keys_of_rows(runs), metrics = metrics_of(runs);
  std::vector<std::vector<std::string>> lines = {{"first run", "runs"}};
  for (const std::string& key : keys) lines[0].push_back(last_key_part(key));
  for (const std::string& name : metrics) lines[0].push_back(name == kBestLoss ? "best validation loss" : name);
  for (const std::vector<RunSummary>& group : runs_by_configuration(runs)) {
    std::vector<std::string>& line = lines.emplace_back();
    line = {group.front().name, std::to_string(group.size())};
    for (const std::string& key : keys) {
      const std::string value = group.front().setting(key);
      line.push_back(value.empty() ? "-" : value);
    }
    for (const std::string& name : metrics) {
      const Interval interval = over_runs(group, name);
      line.push_back(interval.count == 0 ? "-" : with_interval(interval, 4));
    }
  }
  return aligned(lines, lines[0].size());
}

Json seed_table_json(const std::vector<RunSummary>& runs) {
  Json document = make_document("seeds", 1);
  const std::vector<std::string> keys = keys_of_rows(runs), metrics = metrics_of(runs);
  document["differs"] = keys;
  document["configurations"] = Json::array();
  for (const std::vector<RunSummary>& group : runs_by_configuration(runs)) {
    Json entry = {{"runs", Json::array()}, {"settings", Json::object()}, {"metrics", Json::object()}};
    for (const RunSummary& run : group) entry["runs"].push_back(run.directory.string());
    for (const std::string& key : keys) entry["settings"][key] = group.front().setting(key);
    for (const std::string& name : metrics) {
      const Interval interval = over_runs(group, name);
      if (interval.count == 0) continue;
      Json values = {{"mean", interval.mean}, {"count", interval.count}};
      if (interval.count > 1) values.update({{"low", interval.low}, {"high", interval.high}});
      entry["metrics"][name] = std::move(values);
    }
    document["configurations"].push_back(std::move(entry));
  }
  return document;
}

}  // namespace plumb
