#include "plumb/report/results.h"

#include <fmt/chrono.h>

#include <ctime>

namespace plumb {
namespace {

template <typename Item>
Json list_json(const std::vector<Item>& items) {
  Json list = Json::array();
  for (const Item& item : items) list.push_back(item.to_json());
  return list;
}

}  // namespace

std::vector<SettingGroup> setting_groups(const std::vector<std::pair<std::string, std::string>>& settings) {
  std::vector<SettingGroup> groups;
  for (const auto& [key, value] : settings) {
    const size_t point = key.rfind('.');
    const std::string section = point == 0 ? "plug-ins" : key.substr(0, point);
    if (groups.empty() || groups.back().group != section) groups.push_back({section, {}});
    groups.back().items.emplace_back(key.substr(point + 1), value);
  }
  return groups;
}

Json Results::to_json() const {
  Json json = make_document("study", 1);
  json["title"] = title;
  json["subtitle"] = subtitle;
  json["created"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  json["plumb_version"] = PLUMB_VERSION;
  json["summary"] = summary;
  json["settings"] = Json::array();
  for (const SettingGroup& each : settings) json["settings"].push_back({{"group", each.group}, {"items", each.items}});
  json["verdicts"] = list_json(verdicts);
  json["figures"] = list_json(figures);
  json["tables"] = list_json(tables);
  if (!measurements.is_null()) json["measurements"] = measurements;
  if (!subject.empty()) json["subject"] = subject;
  return json;
}

}  // namespace plumb
