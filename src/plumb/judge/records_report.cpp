#include "plumb/judge/records_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "plumb/report/results.h"

namespace plumb {
namespace {

constexpr size_t kMostMetrics = 24, kMostPoints = 300;

/// The names of metrics: losses first, then those of most runs.
std::vector<std::string> metrics_of(const std::vector<RunRecord>& runs) {
  std::map<std::string, size_t> counts;
  for (const RunRecord& run : runs) {
    for (const auto& [metric, values] : run.series) ++counts[metric];
  }
  std::vector<std::string> names;
  for (const auto& [metric, count] : counts) names.push_back(metric);
  const auto rank = [&](const std::string& name) {
    return std::pair(name.find("loss") == std::string::npos, runs.size() - counts[name]);
  };
  std::stable_sort(names.begin(), names.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  if (names.size() > kMostMetrics) names.resize(kMostMetrics);
  return names;
}

/// The settings whose values differ, without those that are metrics, too.
std::vector<std::string> differing_settings(const std::vector<RunRecord>& runs,
                                            const std::vector<std::string>& metrics) {
  std::map<std::string, std::set<std::string>> values;
  for (const RunRecord& run : runs) {
    for (const auto& [key, value] : run.settings) values[key].insert(value);
  }
  std::vector<std::string> keys;
  for (const auto& [key, of_runs] : values) {
    if (of_runs.size() > 1 && std::find(metrics.begin(), metrics.end(), key) == metrics.end()) keys.push_back(key);
  }
  return keys;
}

/// Whether a metric has one value in all runs: a setting that is written at each step.
bool is_constant(const std::vector<RunRecord>& runs, const std::string& metric) {
  std::set<double> values;
  for (const RunRecord& run : runs) {
    const auto found = run.series.find(metric);
    if (found == run.series.end()) continue;
    for (const RunRecord::Value& one : found->second)
      if (values.insert(one.value).second && values.size() > 1) return false;
  }
  return true;
}

/// A curve for each run; empty if none has two points.
Figure figure_of(const std::vector<RunRecord>& runs, const std::string& metric) {
  std::string id = metric;  // also a file's name
  std::replace_if(
      id.begin(), id.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  Figure figure{id, metric, "", "line", {"step"}, {metric}};
  for (const RunRecord& run : runs) {
    const auto found = run.series.find(metric);
    if (found == run.series.end() || found->second.size() < 2) continue;
    Series& series = figure.add(run.name, run.name);
    const std::vector<RunRecord::Value>& values = found->second;
    const size_t every = (values.size() + kMostPoints - 1) / kMostPoints;
    if (every > 1) figure.caption = fmt::format("Of more than {} points of a run, evenly spaced ones.", kMostPoints);
    for (size_t i = (values.size() - 1) % every; i < values.size(); i += every)  // the last among them
      if (std::isfinite(values[i].step)) series.point(values[i].step, values[i].value);
  }
  return figure;
}

}  // namespace

std::vector<RunRecord> read_all_records(const std::vector<std::string>& places, LogFiles* known) {
  std::vector<RunRecord> records;
  for (const std::string& place : places) {
    for (RunRecord& record :
         read_run_records(place, {{"part", "split", "phase", "mode", "stage", "subset"}}, nullptr, known)) {
      if (places.size() > 1 && !record.name.starts_with(place))
        record.name = (std::filesystem::path(place) / record.name).string();
      records.push_back(std::move(record));
    }
  }
  return records;
}

Json records_report(const std::vector<RunRecord>& runs) {
  Results report{.title = runs.size() == 1 ? runs.front().name : fmt::format("{} runs", runs.size()),
                 .subject = "runs"};
  const std::vector<std::string> metrics = metrics_of(runs);
  const std::vector<std::string> settings = differing_settings(runs, metrics);
  Table table{"runs", "Runs", "What each run ends with, after the settings in which the runs differ."};
  table.columns = {"run", "state"};
  table.columns.insert(table.columns.end(), settings.begin(), settings.end());
  table.columns.insert(table.columns.end(), metrics.begin(), metrics.end());
  size_t failed = 0;
  for (const RunRecord& run : runs) {
    failed += run.failed ? 1 : 0;
    Json row = {run.name, !run.state.empty() ? run.state : run.failed ? "failed" : run.ended ? "" : "not ended"};
    for (const std::string& key : settings) {
      const std::string* value = run.setting(key);
      row.push_back(value == nullptr ? "" : *value);
    }
    for (const std::string& metric : metrics) {
      const auto found = run.series.find(metric);
      const double last = found == run.series.end() || found->second.empty() ? NAN : found->second.back().value;
      row.push_back(std::isfinite(last) ? Json(last) : Json());
    }
    table.rows.push_back(row);
  }
  report.summary.push_back(fmt::format("{} run{}{}.", runs.size(), runs.size() == 1 ? "" : "s",
                                       failed > 0 ? fmt::format(", of which {} failed", failed) : ""));
  for (const std::string& metric : metrics) {
    if (is_constant(runs, metric)) continue;
    Figure figure = figure_of(runs, metric);
    if (!figure.series.empty()) report.figures.push_back(std::move(figure));
  }
  report.tables.push_back(std::move(table));
  return report.to_json();
}

}  // namespace plumb
