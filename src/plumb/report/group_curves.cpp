#include "plumb/report/group_curves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace plumb {
namespace {

/// A unit in which the training times of these runs are short numbers.
std::pair<double, std::string> unit_of_time(const std::vector<RunGroup>& groups) {
  double longest = 0;
  for (const RunGroup& group : groups) {
    for (const RunSummary& run : group.runs) {
      for (const std::optional<double>& time : training_seconds(run.history))
        longest = std::max(longest, time.value_or(0));
    }
  }
  if (longest < 180) return {1, "seconds"};
  return longest < 3 * 3600.0 ? std::pair{60.0, "minutes"} : std::pair{3600.0, "hours"};
}

}  // namespace

std::optional<double> finite(double value) { return std::isfinite(value) ? std::optional(value) : std::nullopt; }

RunReadings merge_runs(const std::vector<RunSummary>& runs, const std::vector<RunReadings>& of_runs) {
  if (runs.size() == 1) return of_runs.front();
  int64_t end = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].outcome == "diverged" && !of_runs[i].empty()) end = std::min(end, of_runs[i].back().step);
  }
  std::map<int64_t, RunReadings> by_step;
  for (const RunReadings& readings : of_runs) {
    for (const RunReading& reading : readings) by_step[reading.step].push_back(reading);
  }
  RunReadings merged;
  for (const auto& [step, readings] : by_step) {
    const auto as_far = std::count_if(of_runs.begin(), of_runs.end(), [at = step](const RunReadings& one) {
      return !one.empty() && one.back().step >= at;
    });
    if (step > end || static_cast<size_t>(as_far) != readings.size()) continue;
    const auto mean = [&](const auto& number) -> std::optional<double> {
      double sum = 0;
      for (const RunReading& reading : readings) sum += number(reading).value_or(std::nan(""));
      return finite(sum / static_cast<double>(readings.size()));
    };
    const auto [least, most] = std::minmax_element(readings.begin(), readings.end(),
                                                   [](const auto& a, const auto& b) { return a.value < b.value; });
    merged.push_back({step,
                      mean([](const RunReading& each) { return std::optional(each.value); }).value_or(std::nan("")),
                      least->value, most->value, mean([](const RunReading& each) { return each.epochs; }),
                      mean([](const RunReading& each) { return each.tokens; }),
                      mean([](const RunReading& each) { return each.seconds; })});
  }
  return merged;
}

GroupFigures::GroupFigures(const std::vector<RunGroup>& groups) : unit_(unit_of_time(groups)) {}

void GroupFigures::add(Figure& figure, const RunGroup& group, const std::string& name, const PointNumber& number,
                       const std::string& metric, const char* style) const {
  std::vector<RunReadings> of_runs;
  for (const RunSummary& run : group.runs) {
    const std::vector<std::optional<double>> seconds = training_seconds(run.history);
    RunReadings& readings = of_runs.emplace_back();
    for (size_t i = 0; i < run.history.size(); ++i) {
      const TrainPoint& point = run.history[i];
      if (const std::optional<double> value = number(point))
        readings.push_back({point.step, *value, point.metrics.get(metric + "_low"), point.metrics.get(metric + "_high"),
                            point.epochs, static_cast<double>(point.tokens), seconds[i]});
    }
  }
  add(figure, group, merge_runs(group.runs, of_runs), name, style);
}

void GroupFigures::add(Figure& figure, const RunGroup& group, const RunReadings& readings, const std::string& name,
                       const char* style) const {
  if (readings.empty()) return;
  const bool banded = std::any_of(readings.begin(), readings.end(), [](const RunReading& each) { return each.low; });
  Series& series = figure.add(name, group.full_label, style);
  const double gap = std::nan("");
  std::vector<double> epochs, tokens, times;
  const auto put = [&](const RunReading& at, double value, double low, double high) {
    banded ? series.point(at.step, value, low, high) : series.point(at.step, value);
    epochs.push_back(at.epochs.value_or(gap));
    tokens.push_back(at.tokens.value_or(gap));
    times.push_back(at.seconds.value_or(gap) / unit_.first);
  };
  for (const RunReading& each : readings) put(each, each.value, each.low.value_or(gap), each.high.value_or(gap));
  if (std::any_of(group.runs.begin(), group.runs.end(), [](const auto& run) { return run.outcome == "diverged"; })) {
    const RunSummary& run = group.runs.front();
    RunReading end = readings.back();
    if (group.runs.size() == 1 && !run.history.empty())
      end = {run.history.back().step,
             0,
             {},
             {},
             run.history.back().epochs,
             static_cast<double>(run.history.back().tokens),
             training_seconds(run.history).back()};
    put(end, gap, gap, gap);
  }
  series.other_x = {std::move(epochs), std::move(tokens), std::move(times)};
}

void GroupFigures::take(Figure figure) {
  if (figure.series.empty()) return;
  figure.kind = "line";
  figure.x = {"step"};
  const std::vector<Axis> axes = {{"epochs"}, {"target tokens"}, {unit_.second + " of training, evaluation excluded"}};
  std::vector<size_t> kept;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto known = [i](const Series& series) {
      return std::any_of(series.other_x[i].begin(), series.other_x[i].end(),
                         [](double at) { return std::isfinite(at); });
    };
    if (std::all_of(figure.series.begin(), figure.series.end(), known)) kept.push_back(i);
  }
  for (const size_t i : kept) figure.other_x.push_back(axes[i]);
  for (Series& series : figure.series) {
    std::vector<std::vector<double>> some;
    for (const size_t i : kept) some.push_back(std::move(series.other_x[i]));
    series.other_x = std::move(some);
  }
  figures.push_back(std::move(figure));
}

}  // namespace plumb
