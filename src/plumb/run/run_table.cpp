#include "plumb/run/run_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plumb/base/error.h"
#include "plumb/base/json_fields.h"
#include "plumb/base/terminal.h"
#include "plumb/base/text.h"
#include "plumb/base/utf8.h"

namespace plumb {
namespace {

std::string cell_text(const Json& cell, bool is_time) {
  if (cell.is_null()) return "-";
  if (cell.is_string()) return printable(cell.get<std::string>());
  if (is_time) return duration(cell.get<double>());
  return cell.is_number_float() ? fmt::format("{:.5g}", cell.get<double>()) : cell.dump();
}

/// The sort order: numbers, then text, then null.
int rank_of(const Json& cell) { return cell.is_number() ? 0 : cell.is_string() ? 1 : 2; }

bool comes_before(const Json& a, const Json& b, bool descending) {
  if (rank_of(a) != rank_of(b)) return rank_of(a) < rank_of(b);
  if (a.is_null()) return false;
  return descending ? b < a : a < b;
}

/// A column of the table as text.
struct TextColumn {
  std::string key;
  std::vector<std::string> cells;  // the first is the heading
  bool is_setting = false;
  bool all_numbers = true;
  size_t known = 0;  // number of runs with a value
  size_t width = 0;  // of the longest cell
};

TextColumn text_column(const RunColumn& column, const std::vector<RunSummary>& runs) {
  TextColumn text{.key = column.key, .cells = {printable(column.name)}, .is_setting = column.is_setting};
  for (const RunSummary& run : runs) {
    const Json cell = column.value(run);
    text.all_numbers = text.all_numbers && (cell.is_number() || cell.is_null());
    text.known += cell.is_null() ? 0 : 1;
    text.cells.push_back(cell_text(cell, column.is_time));
  }
  for (const std::string& cell : text.cells) text.width = std::max(text.width, characters_in(cell));
  return text;
}

/// Removes settings until the columns, with two spaces between them, fit into `width`: first those that the fewest runs
/// have, from right to left. Returns the removed keys, sorted.
std::vector<std::string> fit(std::vector<TextColumn>& columns, size_t width) {
  std::vector<std::string> removed;
  const auto wide = [&] {
    size_t sum = 2 * (columns.size() - 1);
    for (const TextColumn& column : columns) sum += column.width;
    return sum;
  };
  while (width > 0 && wide() > width) {
    auto rarest = columns.end();
    for (auto column = columns.begin(); column != columns.end(); ++column) {
      if (column->is_setting && (rarest == columns.end() || column->known <= rarest->known)) rarest = column;
    }
    if (rarest == columns.end()) break;
    removed.push_back(rarest->key);
    columns.erase(rarest);
  }
  std::sort(removed.begin(), removed.end());
  return removed;
}

RunColumn setting_column(const std::string& key) {
  return {last_key_part(key), key, [key](const RunSummary& run) { return setting_cell(run.setting(key)); },
          /*is_time=*/false, /*is_setting=*/true};
}

/// The column with this heading or, failing that, this key or last part of a key.
const RunColumn& column_named(const std::vector<RunColumn>& columns, const std::string& wanted) {
  for (const auto& name_of :
       {+[](const RunColumn& each) { return each.name; }, +[](const RunColumn& each) { return each.key; },
        +[](const RunColumn& each) { return last_key_part(each.key); }}) {
    std::vector<const RunColumn*> found;
    std::vector<std::string> keys;
    for (const RunColumn& each : columns) {
      if (name_of(each) != wanted) continue;
      found.push_back(&each);
      keys.push_back(each.key);
    }
    if (found.size() > 1)
      throw UsageError(fmt::format("'{}' is the last part of several columns", wanted), "name one: " + join(keys));
    if (!found.empty()) return *found.front();
  }
  std::vector<std::string> names, results;  // of results; a setting has the key of the configuration
  for (const RunColumn& each : columns) {
    names.insert(names.end(), {each.name, each.key});
    if (!each.is_setting) results.push_back(each.name);
  }
  throw UsageError(
      fmt::format("there is no column '{}'", wanted),
      did_you_mean(wanted, names, "columns: " + join(results) + "; or a configuration key, such as train.seed"));
}

}  // namespace

Json setting_cell(const std::string& toml) {
  if (toml.empty()) return nullptr;
  Json json = Json::parse(toml, nullptr, /*allow_exceptions=*/false);
  if (json.is_number() || json.is_string()) return json;
  return toml;
}

std::vector<RunColumn> run_columns(const std::vector<RunSummary>& runs) {
  std::vector<RunColumn> columns = {{"run", "run", [](const RunSummary& run) { return Json(run.name); }}};
  const std::vector<std::string> keys = differing_keys(runs);
  for (const std::string& key : keys) {
    const bool unique = std::count_if(keys.begin(), keys.end(), [&](const std::string& other) {
                          return last_key_part(other) == last_key_part(key);
                        }) == 1;
    columns.push_back(setting_column(key));
    if (!unique) columns.back().name = key;
  }
  columns.push_back({"outcome", "outcome", [](const RunSummary& run) { return Json(run.outcome); }});
  columns.push_back({"step", "step", [](const RunSummary& run) { return Json(run.step); }});
  columns.push_back(
      {"best validation loss", "loss", [](const RunSummary& run) { return finite_or_null(run.best_valid_nll); }});
  columns.push_back({"at step", "best_step",
                     [](const RunSummary& run) { return run.best_valid_nll ? Json(run.best_step) : Json(nullptr); }});
  for (const std::string& name : task_metrics(runs))
    columns.push_back({name, name, [name](const RunSummary& run) { return finite_or_null(run.metrics.get(name)); }});
  columns.push_back({"time", "seconds", [](const RunSummary& run) { return finite_or_null(run.seconds); }, true});
  const auto is_remarkable = [](const RunSummary& run) {
    return run.learning && run.learning->learning != Learning::learned;
  };
  if (std::any_of(runs.begin(), runs.end(), is_remarkable)) {
    columns.push_back({"learning", "learning", [](const RunSummary& run) {
                         return run.learning ? Json(to_string(run.learning->learning)) : Json(nullptr);
                       }});
  }
  if (std::any_of(runs.begin(), runs.end(), [](const RunSummary& run) { return !run.trouble.empty(); })) {
    columns.push_back({"trouble", "trouble",
                       [](const RunSummary& run) { return run.trouble.empty() ? Json(nullptr) : Json(run.trouble); }});
  }
  return columns;
}

std::vector<RunColumn> run_columns(const std::vector<RunSummary>& runs, const std::vector<std::string>& names) {
  std::vector<RunColumn> all = run_columns(runs), chosen;
  for (const RunSummary& run : runs) {
    for (const auto& [key, value] : run.settings) {
      if (std::none_of(all.begin(), all.end(), [&, &key = key](const RunColumn& column) { return column.key == key; }))
        all.push_back(setting_column(key));
    }
  }
  for (const std::string& name : names) chosen.push_back(column_named(all, name));
  for (RunColumn& column : chosen) {
    const auto same = std::count_if(chosen.begin(), chosen.end(), [&](const RunColumn& other) {
      return last_key_part(other.key) == last_key_part(column.key);
    });
    if (column.is_setting && same > 1) column.name = column.key;
  }
  return chosen;
}

void sort_runs(std::vector<RunSummary>& runs, const std::string& column, bool descending) {
  const RunColumn chosen = column_named(run_columns(runs), column);
  std::stable_sort(runs.begin(), runs.end(), [&](const RunSummary& a, const RunSummary& b) {
    return comes_before(chosen.value(a), chosen.value(b), descending);
  });
}

std::string run_table_text(const std::vector<RunSummary>& runs, const std::vector<RunColumn>& shown, size_t width) {
  std::vector<TextColumn> columns;
  for (const RunColumn& column : shown) columns.push_back(text_column(column, runs));
  const std::vector<std::string> left_out = fit(columns, width);
  std::vector<std::vector<std::string>> lines(runs.size() + 1);
  for (const TextColumn& column : columns) {
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::string space(column.all_numbers ? column.width - characters_in(column.cells[i]) : 0, ' ');
      lines[i].push_back(space + column.cells[i]);
    }
  }
  std::string text = aligned(lines, columns.size());
  if (!left_out.empty()) {
    text += fmt::format("{} more setting{} differ{}: {}\n", left_out.size(), left_out.size() == 1 ? "" : "s",
                        left_out.size() == 1 ? "s" : "", printable(join(left_out)));
  }
  return text;
}

Json run_table_json(const std::vector<RunSummary>& runs) {
  Json document = make_document("runs", 1);
  const std::vector<std::string> keys = differing_keys(runs);
  document["differs"] = keys;
  document["runs"] = Json::array();
  for (const RunSummary& run : runs) {
    Json entry = {{"directory", run.directory.string()}, {"name", run.name}, {"settings", Json::object()}};
    for (const std::string& key : keys) entry["settings"][key] = setting_cell(run.setting(key));
    entry["outcome"] = run.outcome;
    entry["step"] = run.step;
    entry["best_valid_nll"] = finite_or_null(run.best_valid_nll);
    entry["best_step"] = run.best_valid_nll ? Json(run.best_step) : Json(nullptr);
    entry["metrics"] = Json::object();
    for (const auto& [name, value] : run.metrics) entry["metrics"][name] = finite_or_null(value);
    entry["seconds"] = finite_or_null(run.seconds);
    if (run.learning) entry["learning"] = described_json(*run.learning);
    if (!run.trouble.empty()) entry["trouble"] = run.trouble;
    document["runs"].push_back(entry);
  }
  return document;
}

}  // namespace plumb
