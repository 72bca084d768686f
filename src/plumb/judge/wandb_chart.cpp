#include "plumb/judge/wandb_chart.h"

#include <map>
#include <regex>
#include <set>

namespace plumb {
namespace {

struct Curve {
  std::string run, metric;
};

/// The columns with values of a run, by name.
std::map<std::string, Curve> curves_in(const std::vector<std::string>& header) {
  static constexpr std::string_view kBetween = " - ";
  const std::set<std::string> columns(header.begin(), header.end());
  std::map<std::string, Curve> curves;
  for (const std::string& column : header) {
    const size_t at = column.rfind(kBetween);
    if (at == std::string::npos || !columns.contains(column + "__MIN") || !columns.contains(column + "__MAX")) continue;
    const std::string metric = column.substr(at + kBetween.size());
    if (metric != "_step") curves[column] = {column.substr(0, at), metric};  // beside an axis that is not the step
  }
  return curves;
}

/// The settings that the names of runs tell, by run.
std::map<std::string, Row> settings_of(const std::map<std::string, Curve>& curves) {
  static const std::regex numbered(R"((.+?)[-_ /:]+(?:seed|s)?[-_ :=]*(\d+))");
  std::map<std::string, Row> settings;
  std::set<std::string> groups;
  bool all = true;
  for (const auto& [column, curve] : curves) {
    if (settings.contains(curve.run)) continue;
    Row& row = settings[curve.run];
    row.emplace_back("run", curve.run);
    std::smatch parts;
    all = std::regex_match(curve.run, parts, numbered) && all;
    if (parts.empty()) continue;
    row.emplace_back("group", parts[1]);
    row.emplace_back("seed", parts[2]);
    groups.insert(parts[1]);
  }
  if (!all || groups.size() == settings.size() || groups.size() == 1) {
    for (auto& [run, row] : settings) row.resize(1);
  }
  return settings;
}

}  // namespace

std::vector<Row> unfolded_chart(std::vector<Row> rows, const std::vector<std::string>& header) {
  const std::map<std::string, Curve> curves = curves_in(header);
  if (curves.empty()) return rows;
  const std::map<std::string, Row> settings = settings_of(curves);
  std::vector<Row> unfolded;
  for (const Row& row : rows) {
    std::map<std::string, Row> points;  // by run
    for (const auto& [column, text] : row) {
      const auto curve = curves.find(column);
      if (curve == curves.end()) continue;
      Row& point = points[curve->second.run];
      if (point.empty()) {
        point = settings.at(curve->second.run);
        if (row.front().first == header.front()) point.emplace_back("step", row.front().second);
      }
      point.emplace_back(curve->second.metric, text);
    }
    for (auto& [run, point] : points) unfolded.push_back(std::move(point));
  }
  return unfolded;
}

}  // namespace plumb
