#include "plumb/report/results.h"

#include "plumb/report/html.h"

namespace plumb {

Json Results::to_json() const {
  Json json = begin_results(title, subtitle);
  json["summary"] = summary;
  for (const SettingGroup& each : settings) json["settings"].push_back({{"group", each.group}, {"items", each.items}});
  for (const Verdict& verdict : verdicts) json["verdicts"].push_back(verdict.to_json());
  for (const Figure& figure : figures) json["figures"].push_back(figure.to_json());
  for (const Table& table : tables) json["tables"].push_back(table.to_json());
  if (!measurements.is_null()) json["measurements"] = measurements;
  if (!subject.empty()) json["subject"] = subject;
  return json;
}

}  // namespace plumb
