// Curves of training runs in figures: one for each group of runs that differ only in their seed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/report/report_parts.h"
#include "plumb/report/run_groups.h"

namespace plumb {

using PointNumber = std::function<std::optional<double>(const TrainPoint&)>;

/// The value, unless it is NaN or infinite.
std::optional<double> finite(double value);

/// A number of a run at a step, or of several runs: their mean.
struct RunReading {
  int64_t step = 0;
  double value = 0;
  std::optional<double> low{}, high{}, epochs{}, tokens{}, seconds{};
};
using RunReadings = std::vector<RunReading>;  // by step

/// The readings of runs that differ only in their seed as one: means, with the smallest and the largest as their band,
/// at the steps that have a reading of every run that has come as far. They end with the first run that diverged.
RunReadings merge_runs(const std::vector<RunSummary>& runs, const std::vector<RunReadings>& of_runs);

/// Figures with a curve for each group of runs.
class GroupFigures {
 public:
  explicit GroupFigures(const std::vector<RunGroup>& groups);

  /// A curve over the points that have this number, if there are any; `metric`: whose interval is its band. A diverged
  /// run's curve ends in a gap, which the page marks.
  void add(Figure& figure, const RunGroup& group, const std::string& name, const PointNumber& number,
           const std::string& metric = "", const char* style = "solid") const;
  void add(Figure& figure, const RunGroup& group, const RunReadings& readings, const std::string& name,
           const char* style = "solid") const;

  /// Adds the figure unless it has no curve, with its axes: those that no curve has numbers for are left out.
  void take(Figure figure);

  std::vector<Figure> figures;

 private:
  std::pair<double, std::string> unit_;  // of time: seconds, and what it is called
};

}  // namespace plumb
