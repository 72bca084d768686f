#include "plumb/judge/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <map>
#include <regex>
#include <set>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"

namespace plumb {
namespace {
std::string_view last_part(std::string_view key) { return key.substr(key.find_last_of("./") + 1); }

/// What programs call the place in a history, in any case and after any path: "Step", "trainer/global_step".
constexpr std::array<std::string_view, 9> kSteps = {"step", "_step",      "global_step", "steps", "iteration",
                                                    "iter", "iterations", "update",      "epoch"};
constexpr std::array<std::string_view, 6> kRuns = {"run", "run_name", "run_id", "name", "id", "experiment"};
constexpr std::array<std::string_view, 5> kRates = {"learning_rate", "lr", "rate", "max_lr", "base_lr"};

void add_leaves(Row& row, const std::string& prefix, const Json& json) {
  for (const auto& [key, value] : json.items()) {
    const std::string name = prefix + key;
    if (value.is_object()) {
      add_leaves(row, name + ".", value);
    } else if (value.is_string()) {
      row.emplace_back(name, value.get<std::string>());
    } else if (value.is_number() || value.is_boolean()) {
      row.emplace_back(name, value.dump());
    }
  }
}

std::string lower(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

/// The column that counts steps; empty if there is none.
std::string step_column(const std::vector<Row>& rows) {
  for (const std::string_view name : kSteps) {
    for (const Row& row : rows) {
      for (const auto& [column, text] : row) {
        if (lower(last_part(column)) == name) return column;
      }
    }
  }
  return {};
}

/// Columns of text that may tell runs apart: values that repeat and are no numbers, truth values or times, in more than
/// half of the lines. A column that only a few lines have is a remark, such as "status" at the end of a run.
std::set<std::string> describing_columns(const std::vector<Row>& rows) {
  std::map<std::string, std::set<std::string>> values;
  std::map<std::string, size_t> lines;
  std::set<std::string> others;
  for (const Row& row : rows) {
    for (const auto& [column, text] : row) {
      values[column].insert(text);
      ++lines[column];
      if (number_in(text) || text == "true" || text == "false" || lower(column).find("time") != std::string::npos)
        others.insert(column);
    }
  }
  std::set<std::string> columns;
  for (const auto& [column, found] : values) {
    const bool repeats = 2 * found.size() <= lines[column] || found.size() == 1;
    if (!others.contains(column) && repeats && 2 * lines[column] > rows.size()) columns.insert(column);
  }
  return columns;
}

/// Throws UsageError if a column that no key names has lines of training and of validation: they are no runs of their
/// own.
void require_one_part(const std::vector<Row>& rows, const std::set<std::string>& describing,
                      const std::vector<std::string>& keys, const std::string& name) {
  static constexpr std::array<std::string_view, 5> kParts = {"split", "phase", "mode", "stage", "subset"};
  for (const std::string& column : describing) {
    if (!contains(kParts, lower(last_part(column))) || contains(keys, column)) continue;
    std::set<std::string> values;
    for (const Row& row : rows) {
      if (const std::string* text = find_value(row, column)) values.insert(*text);
    }
    if (values.size() > 1)
      throw UsageError(fmt::format("{}: its lines are of several kinds, by \"{}\"", name, column),
                       fmt::format("choose one: --where {}={}", column, *values.rbegin()));
  }
}

/// Adds the numbers of a line to the metrics of a run.
void add_values(RunRecord& record, const Row& row, double step, const std::string& except) {
  for (const auto& [column, text] : row) {
    if (column == except) continue;
    if (const std::optional<double> value = number_in(text)) record.series[column].push_back({step, *value});
  }
}

}  // namespace

const std::string* RunRecord::setting(const std::string& key) const { return find_value(settings, key); }

Row row_of(const Json& object) {
  Row row;
  add_leaves(row, "", object);
  return row;
}

std::optional<double> number_in(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return {};
  const std::string_view rest = std::string_view(text).substr(end - text.c_str());
  return rest.find_first_not_of(" \t") == std::string_view::npos ? std::optional(value) : std::nullopt;
}

bool is_missing(const std::string& text) {
  static constexpr std::array<std::string_view, 6> kMissing = {"", "none", "null", "n/a", "na", "-"};
  return contains(kMissing, lower(text));
}

Json parse_log(std::string_view text) {
  Json json = parse_or_discard(text);
  if (!json.is_discarded()) return json;
  static const std::regex bare(R"(([:\[,]\s*)(NaN|-?Infinity)\b)");
  return parse_or_discard(std::regex_replace(std::string(text), bare, "$1\"$2\""));
}

bool is_seed_key(const std::string& key) { return last_part(key) == "seed" || last_part(key) == "random_seed"; }

bool is_rate_key(const std::string& key) { return contains(kRates, last_part(key)); }

std::vector<RunRecord> records_of(const std::vector<Row>& rows, const std::string& name,
                                  const std::vector<std::string>& keys) {
  std::vector<RunRecord> records;
  const std::string step = step_column(rows);
  if (step.empty()) {
    for (size_t i = 0; i < rows.size(); ++i) {
      RunRecord& record = records.emplace_back(RunRecord{.name = fmt::format("{}, run {}", name, i + 1)});
      record.settings = rows[i];
      add_values(record, rows[i], 0, "");
    }
    return records;
  }
  // A rate that changes along the run, as schedules have it, does not tell runs apart: it is a metric.
  const std::set<std::string> describing = describing_columns(rows);
  require_one_part(rows, describing, keys, name);
  const auto tells_runs_apart = [&](const std::string& column) {
    if (column == step) return false;
    return contains(kRuns, column) || is_seed_key(column) || describing.contains(column) || contains(keys, column);
  };
  for (const Row& row : rows) {
    Row settings;
    for (const auto& [column, text] : row) {
      if (tells_runs_apart(column)) settings.emplace_back(column, text);
    }
    auto found = std::find_if(records.begin(), records.end(),
                              [&](const RunRecord& record) { return record.settings == settings; });
    if (found == records.end()) {
      std::string run = name;
      for (const auto& [column, text] : settings) run += fmt::format(", {} {}", column, text);
      found = records.insert(records.end(), RunRecord{.name = run, .settings = settings});
    }
    const std::string* at = find_value(row, step);
    const std::optional<double> number = at == nullptr ? std::nullopt : number_in(*at);
    add_values(*found, row, number.value_or(std::numeric_limits<double>::quiet_NaN()), step);
  }
  return records;
}

}  // namespace plumb
