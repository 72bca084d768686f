// What a page shows, as one value: the results of a study, measurements of a model, training runs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plumb/report/report_parts.h"

namespace plumb {

/// Settings under one heading: names and values.
struct SettingGroup {
  std::string group;
  std::vector<std::pair<std::string, std::string>> items;
};

/// Keys such as "train.steps" by the sections before their last points, in order; what has none is about plug-ins.
std::vector<SettingGroup> setting_groups(const std::vector<std::pair<std::string, std::string>>& settings);

struct Results {
  std::string title, subtitle{};
  std::vector<std::string> summary{};  // sentences
  std::vector<SettingGroup> settings{};
  std::vector<Verdict> verdicts{};
  std::vector<Figure> figures{};
  std::vector<Table> tables{};
  Json measurements{};    // of a study, by part; null: of no study
  std::string subject{};  // "check", "measurement", "training runs", "runs"; empty: a study

  /// A document of the schema plumb.study/1 (docs/formats/results.md), dated now.
  [[nodiscard]] Json to_json() const;
};

}  // namespace plumb
