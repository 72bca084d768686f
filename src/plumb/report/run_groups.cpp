#include "plumb/report/run_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "plumb/base/text.h"
#include "plumb/report/seed_table.h"
#include "plumb/run/run_table.h"

namespace plumb {
namespace {

constexpr size_t kMostSettings = 3;  // of a label, if all that differ are named

std::string text_of(const Json& cell) {
  if (cell.is_number_float()) return fmt::format("{:g}", cell.get<double>());
  return cell.is_string() ? cell.get<std::string>() : cell.dump();
}

/// How many of the groups these columns tell apart.
size_t told_apart(const std::vector<RunGroup*>& groups, const std::vector<RunColumn>& columns) {
  std::set<std::string> found;
  for (const RunGroup* group : groups) {
    std::string all;
    for (const RunColumn& column : columns) all += column.value(group->runs.front()).dump() + ' ';
    found.insert(all);
  }
  return found.size();
}

/// The settings that differ between these groups.
std::vector<RunColumn> differing_settings(const std::vector<RunGroup*>& groups) {
  std::vector<RunSummary> first;
  for (const RunGroup* group : groups) first.push_back(group->runs.front());
  std::vector<RunColumn> all = run_columns(first);
  std::erase_if(all, [](const RunColumn& column) { return !column.is_setting || column.key == "train.seed"; });
  return all;
}

/// All of these settings or, of many, some that tell as many groups apart.
std::vector<RunColumn> telling_settings(const std::vector<RunGroup*>& groups, const std::vector<RunColumn>& all) {
  if (all.size() <= kMostSettings) return all;
  std::vector<RunColumn> chosen;
  const auto with = [&](const RunColumn& column) {
    std::vector<RunColumn> more = chosen;
    more.push_back(column);
    return told_apart(groups, more);
  };
  while (told_apart(groups, chosen) < told_apart(groups, all)) {
    chosen.push_back(
        *std::max_element(all.begin(), all.end(), [&](const auto& a, const auto& b) { return with(a) < with(b); }));
  }
  return chosen;
}

}  // namespace

std::string RunGroup::settings_text(const std::string& except) const {
  std::vector<std::string> parts;
  for (const auto& [name, value] : settings) {
    if (name != except) parts.push_back(name + ' ' + text_of(value));
  }
  return join(parts);
}

std::vector<RunGroup> group_runs(const std::vector<RunSummary>& runs) {
  std::vector<RunGroup> groups;
  std::map<std::string, std::vector<RunGroup*>> by_task;
  for (std::vector<RunSummary>& same : runs_by_configuration(runs)) {
    const Json task = setting_cell(same.front().setting("task.name"));
    groups.push_back({.task = task.is_string() ? task.get<std::string>() : "", .runs = std::move(same)});
  }
  for (RunGroup& group : groups) by_task[group.task].push_back(&group);
  for (const auto& [task, members] : by_task) {
    std::map<std::string, int> uses;
    const std::vector<RunColumn> differing = differing_settings(members);
    const std::vector<RunColumn> columns = telling_settings(members, differing);
    for (RunGroup* group : members) {
      const auto settings_in = [&](const std::vector<RunColumn>& some) {
        std::vector<std::pair<std::string, Json>> settings;
        for (const RunColumn& column : some) {
          if (Json value = column.value(group->runs.front()); !value.is_null())
            settings.emplace_back(column.name, std::move(value));
        }
        return settings;
      };
      group->settings = settings_in(columns);
      group->all_settings = settings_in(differing);
      ++uses[group->settings_text()];
    }
    for (RunGroup* group : members) {
      group->label = group->settings_text();
      const bool alone = members.size() == 1 && by_task.size() > 1 && !task.empty();
      if (group->label.empty() || uses[group->label] > 1) group->label = alone ? task : group->runs.front().name;
      if (group->runs.size() > 1) group->label += fmt::format(" ({} runs)", group->runs.size());
      group->full_label = by_task.size() > 1 && !task.empty() && !alone ? task + ", " + group->label : group->label;
    }
  }
  return groups;
}

}  // namespace plumb
