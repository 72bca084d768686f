#include "plumb/judge/wandb_chart.h"

#include <set>

namespace plumb {

WandbChart::WandbChart(const std::vector<std::string>& header) : axis_(header.front()) {
  static constexpr std::string_view kBetween = " - ";
  const std::set<std::string> columns(header.begin(), header.end());
  std::set<std::string> prefixes;
  bool numbered = true;
  for (const std::string& column : header) {
    const size_t at = column.rfind(kBetween);
    if (at == std::string::npos || !columns.contains(column + "__MIN") || !columns.contains(column + "__MAX")) continue;
    const std::string run = column.substr(0, at);
    const std::string metric = column.substr(at + kBetween.size());
    if (metric == "_step") continue;  // beside an axis that is not the step
    curves_[column] = {run, metric};
    const size_t digits = run.find_last_not_of("0123456789") + 1;
    const std::string prefix = run.substr(0, digits);
    settings_[run] = {{"run", run}, {"run_prefix", prefix}, {"run_number", run.substr(digits)}};
    prefixes.insert(prefix);
    numbered = numbered && digits < run.size();
  }
  for (auto& [run, row] : settings_) {
    if (!numbered || prefixes.size() == 1 || prefixes.size() == settings_.size()) row.resize(1);
  }
}

std::vector<Row> WandbChart::lines_in(Row row) const {
  if (curves_.empty()) return {std::move(row)};
  std::map<std::string, Row> points;  // by run
  for (const auto& [column, text] : row) {
    const auto curve = curves_.find(column);
    if (curve == curves_.end()) continue;
    Row& point = points[curve->second.run];
    if (point.empty()) {
      point = settings_.at(curve->second.run);
      if (row.front().first == axis_) point.emplace_back("step", row.front().second);
    }
    point.emplace_back(curve->second.metric, text);
  }
  std::vector<Row> lines;
  for (auto& [run, point] : points) lines.push_back(std::move(point));
  return lines;
}

}  // namespace plumb
