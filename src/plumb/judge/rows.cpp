#include "plumb/judge/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <map>
#include <set>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"

namespace plumb {
namespace {
std::string_view last_part(std::string_view key) { return key.substr(key.find_last_of("./") + 1); }

/// What programs call the place in a history, in any case and after any path: "Step", "trainer/global_step".
constexpr std::array<std::string_view, 10> kSteps = {
    "step", "_step", "global_step", "steps", "iteration", "iter", "iterations", "training_iteration", "update",
    "epoch"};
constexpr std::array<std::string_view, 6> kRuns = {"run", "run_name", "run_id", "name", "id", "experiment"};
constexpr std::array<std::string_view, 5> kRates = {"learning_rate", "lr", "rate", "max_lr", "base_lr"};
/// How programs say that a run failed, or that it has not ended, by the first word of its state.
constexpr std::array<std::string_view, 10> kFailed = {"crashed", "crash", "failed", "failure",  "fail",
                                                      "killed",  "error", "oom",    "diverged", "timeout"};
constexpr std::array<std::string_view, 7> kOpen = {"running",   "pending",     "scheduled", "queued",
                                                   "preempted", "interrupted", "stopped"};

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

constexpr size_t kMostOfATable = 100'000;  // columns, or runs

void require_few(size_t count, const std::string& name) {
  if (count > kMostOfATable)
    throw Error(fmt::format("{}: has more than {} columns or runs", name, kMostOfATable),
                "lines are points of a run if a column is called \"step\"");
}

struct Column {
  size_t lines = 0;               // that have a value
  bool is_text = true;            // no value is a number or a truth value, and it is no time
  std::set<std::string> texts{};  // its values, if they are so
};

struct Columns {
  std::vector<std::string> names;  // in the order in which they appear
  std::map<std::string, Column> by_name;
  size_t lines = 0;
};

Columns columns_of(const Rows& rows, const std::string& name) {
  Columns columns;
  rows([&](const Row& row) {
    ++columns.lines;
    for (const auto& [key, text] : row) {
      const auto [at, added] = columns.by_name.try_emplace(key);
      Column& column = at->second;
      if (added) {
        columns.names.push_back(key);
        require_few(columns.names.size(), name);
        column.is_text = lower(key).find("time") == std::string::npos;
      }
      ++column.lines;
      if (!column.is_text) continue;
      column.texts.insert(text);
      column.is_text = !number_in(text) && text != "true" && text != "false" && column.texts.size() <= kMostOfATable;
      if (!column.is_text) column.texts.clear();
    }
  });
  return columns;
}

/// The column that counts steps; empty if there is none.
std::string step_column(const Columns& columns) {
  for (const std::string_view name : kSteps) {
    for (const std::string& column : columns.names) {
      if (lower(last_part(column)) == name) return column;
    }
  }
  return {};
}

/// Columns of text that may tell runs apart: values that repeat and are no numbers, truth values or times, in more than
/// half of the lines. A column that only a few lines have is a remark, such as "status" at the end of a run.
std::set<std::string> describing_columns(const Columns& columns) {
  std::set<std::string> describing;
  for (const auto& [name, column] : columns.by_name) {
    const bool repeats = 2 * column.texts.size() <= column.lines || column.texts.size() == 1;
    if (column.is_text && repeats && 2 * column.lines > columns.lines && !is_state_key(name)) describing.insert(name);
  }
  return describing;
}

/// Throws UsageError if a column that no key names has lines of training and of validation: they are no runs of their
/// own.
void require_one_part(const Columns& columns, const std::set<std::string>& describing,
                      const std::vector<std::string>& keys, const std::string& name) {
  static constexpr std::array<std::string_view, 5> kParts = {"split", "phase", "mode", "stage", "subset"};
  for (const std::string& column : describing) {
    if (!contains(kParts, lower(last_part(column))) || contains(keys, column)) continue;
    const std::set<std::string>& values = columns.by_name.at(column).texts;
    if (values.size() > 1)
      throw UsageError(fmt::format("{}: its lines are of several kinds, by \"{}\"", name, column),
                       fmt::format("choose one: --where {}={}", column, *values.rbegin()));
  }
}

/// Takes over what a line says of the run's state.
void add_state(RunRecord& record, const Row& row) {
  for (const auto& [column, text] : row) {
    if (!is_state_key(column)) continue;
    const std::string state = lower(text);
    const std::string word = state.substr(0, state.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
    record.state = text;
    record.failed = contains(kFailed, word);
    record.ended = !contains(kOpen, word);
  }
}

/// Adds the numbers of a line to the metrics of a run.
void add_values(RunRecord& record, const Row& row, double step, const std::set<std::string>& except) {
  for (const auto& [column, text] : row) {
    if (except.contains(column)) continue;
    if (const std::optional<double> value = number_in(text)) record.series[column].push_back({step, *value});
  }
}

/// The same JSON with quotes around what stands for a number that is not finite; empty if nothing does.
std::string with_quoted_numbers(std::string_view json) {
  std::string quoted;
  size_t copied = 0;
  for (size_t begin = 0, end = 0; begin < json.size(); begin = end) {
    end = std::min(json.find_first_of("\"{}[]:, \t\r\n", begin), json.size());
    const std::string word(json.substr(begin, end - begin));
    if (const auto number = number_in(word); number && !std::isfinite(*number)) {
      quoted.append(json.substr(copied, begin - copied)).append("\"" + word + "\"");
      copied = end;
    }
    if (end < json.size() && json[end++] == '"') {  // a text, to its end
      while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
      ++end;
    }
  }
  return copied == 0 ? "" : quoted.append(json.substr(copied));
}

}  // namespace

const std::string* RunRecord::setting(const std::string& key) const { return find_value(settings, key); }

Row row_of(const Json& object) {
  Row row;
  add_leaves(row, "", object);
  return row;
}

Rows read_once(Rows rows) {
  return [rows = std::move(rows), kept = std::vector<Row>(), cells = size_t{0}](const TakeRow& take) mutable {
    for (const Row& row : kept) take(row);
    if (!kept.empty()) return;
    rows([&](const Row& row) {
      kept.push_back(row);
      if ((cells += row.size()) > 10 * kMostOfATable) kept.clear();
      take(row);
    });
  };
}

std::optional<double> number_in(const std::string& text) {
  // A Python program may have set a locale in which numbers have a comma.
  static const locale_t plain = ::newlocale(LC_ALL_MASK, "C", nullptr);
  char* end = nullptr;
  const double value = ::strtod_l(text.c_str(), &end, plain);
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
  const std::string quoted = with_quoted_numbers(text);
  return quoted.empty() ? json : parse_or_discard(quoted);
}

bool is_seed_key(const std::string& key) { return last_part(key) == "seed" || last_part(key) == "random_seed"; }

bool is_rate_key(const std::string& key) { return contains(kRates, last_part(key)); }

bool is_run_key(const std::string& key) {
  std::string name = lower(key);
  std::replace(name.begin(), name.end(), ' ', '_');
  return contains(kRuns, name);
}

bool is_state_key(const std::string& key) {
  const std::string last = lower(last_part(key));
  return last == "state" || last == "status";
}

std::vector<RunRecord> records_of(const Rows& rows, const std::string& name, const std::vector<std::string>& keys) {
  std::vector<RunRecord> records;
  const auto add_run = [&](std::string run, const Row& settings) -> RunRecord& {
    require_few(records.size() + 1, name);
    return records.emplace_back(RunRecord{.name = std::move(run), .settings = settings, .nan_is_gap = true});
  };
  const Columns columns = columns_of(rows, name);
  const std::string step = step_column(columns);
  if (step.empty()) {
    rows([&](const Row& row) {
      const auto own = std::find_if(row.begin(), row.end(), [](const auto& cell) { return is_run_key(cell.first); });
      RunRecord& record =
          add_run(own == row.end() ? fmt::format("{}, run {}", name, records.size() + 1) : own->second, row);
      add_values(record, row, 0, {});
      add_state(record, row);
    });
    return records;
  }
  // A rate that changes along the run, as schedules have it, does not tell runs apart: it is a metric.
  const std::set<std::string> describing = describing_columns(columns);
  require_one_part(columns, describing, keys, name);
  std::set<std::string> no_metrics;  // the step, and what tells runs apart
  std::copy_if(columns.names.begin(), columns.names.end(), std::inserter(no_metrics, no_metrics.end()),
               [&](const std::string& column) {
                 return column == step || is_run_key(column) || is_seed_key(column) || describing.contains(column) ||
                        contains(keys, column);
               });
  std::map<Row, size_t> places;  // in `records`, by what tells runs apart
  rows([&](const Row& row) {
    Row settings;
    for (const auto& [column, text] : row) {
      if (column != step && no_metrics.contains(column)) settings.emplace_back(column, text);
    }
    const auto [place, added] = places.try_emplace(settings, records.size());
    if (added) {
      std::string run = name;
      for (const auto& [column, text] : settings) run += fmt::format(", {} {}", column, text);
      add_run(std::move(run), settings);
    }
    const std::string* at = find_value(row, step);
    const std::optional<double> number = at == nullptr ? std::nullopt : number_in(*at);
    add_values(records[place->second], row, number.value_or(std::numeric_limits<double>::quiet_NaN()), no_metrics);
    add_state(records[place->second], row);
  });
  return records;
}

}  // namespace plumb
