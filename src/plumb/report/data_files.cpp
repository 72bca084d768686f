#include "plumb/report/data_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/parse_number.h"
#include "plumb/base/text.h"
#include "plumb/report/svg.h"
#include "plumb/report/svg_marks.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

/// Whether a spreadsheet would compute this text, and perhaps run a command: "=cmd|…", "-2+…", but not "-2".
bool is_formula(std::string_view text) {
  if (text.empty() || std::string_view("=@+-\t\r").find(text[0]) == std::string_view::npos) return false;
  return !parse_number<double>(text.substr(text[0] == '+' ? 1 : 0));
}

std::string csv_cell(const Json& cell) {
  if (cell.is_null()) return "";
  std::string text = cell.is_string() ? cell.get<std::string>() : cell.dump();
  if (cell.is_string() && is_formula(text)) text.insert(0, 1, '\'');
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  replace_all(text, "\"", "\"\"");
  return '"' + text + '"';
}

std::string csv_line(const std::vector<Json>& cells) {
  std::vector<std::string> texts;
  for (const Json& cell : cells) texts.push_back(csv_cell(cell));
  return join(texts, ",") + '\n';
}

std::string figure_csv(const Json& figure) {
  const auto label = [](const Json& axis, const char* otherwise) {
    const std::string text = axis.value("label", "");
    return Json(text.empty() ? otherwise : text);
  };
  const Json& others = figure.value("other_x", Json::array());
  std::vector<Json> names = {"series", label(figure.at("x"), "x"), label(figure.at("y"), "y"), "low", "high"};
  for (const Json& axis : others) names.push_back(label(axis, "x"));
  std::string text = csv_line(names);
  for (const Json& series : figure.at("series")) {
    const Json low = series.value("low", Json::array()), high = series.value("high", Json::array());
    const Json other_x = series.value("other_x", Json::array());
    for (size_t i = 0; i < series.at("y").size(); ++i) {
      const auto at = [&](const Json& list) { return i < list.size() ? list[i] : Json(); };
      std::vector<Json> cells = {series.at("name"), at(series.at("x")), at(series.at("y")), at(low), at(high)};
      for (const Json& list : other_x) cells.push_back(at(list));
      text += csv_line(cells);
    }
  }
  return text;
}

/// An id as the name of a file: letters, digits, dots, dashes and underscores.
std::string plain_name(std::string id) {
  for (char& c : id)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_') c = '-';
  return id;
}

/// Leaves the series of these names in a figure. A name may itself contain commas.
void keep_series(Json& figure, std::string_view named) {
  std::vector<std::string> names, kept;
  for (const Json& series : figure.at("series")) names.push_back(series.value("name", ""));
  while (!named.empty()) {
    std::string longest;
    for (const std::string& name : names) {
      const bool begins = named.starts_with(name) && (named.size() == name.size() || named[name.size()] == ',');
      if (begins && name.size() > longest.size()) longest = name;
    }
    if (longest.empty())
      throw Error(fmt::format("figure '{}' has no series '{}'", figure.value("id", ""), named),
                  "its series: " + join(names, "; "));
    kept.push_back(longest);
    named.remove_prefix(std::min(longest.size() + 1, named.size()));
  }
  Json left = Json::array();
  for (const Json& series : figure.at("series")) {
    if (contains(kept, series.value("name", ""))) left.push_back(series);
  }
  figure["series"] = left;
}

Json chosen_figures(const Json& results, const FigureChoice& choice) {
  Json figures = results.value("figures", Json::array());
  if (choice.id.empty()) return figures;
  std::vector<std::string> ids;
  for (Json& figure : figures) {
    ids.push_back(figure.value("id", ""));
    if (ids.back() != choice.id) continue;
    if (!choice.series.empty()) keep_series(figure, choice.series);
    return Json::array({figure});
  }
  throw Error(fmt::format("there is no figure '{}'", choice.id), "figures: " + join(ids));
}

/// Writes one file for each of these, named after its id.
template <typename Text>
size_t write_each(const Json& all, const fs::path& directory, const std::string& prefix, const std::string& ending,
                  Text text_of) {
  std::set<std::string> names;
  for (const Json& each : all) {
    std::string name = prefix + plain_name(each.value("id", ""));
    while (!names.insert(name).second) name += "-2";
    write_file_atomic(directory / (name + ending), text_of(each));
  }
  return names.size();
}

/// Calls `write`, and says that the results are damaged if they lack something or have something else in its place.
template <typename Write>
size_t from_results(const fs::path& directory, Write write) {
  fs::create_directories(directory);
  try {
    return write();
  } catch (const Json::exception& error) {
    throw Error(fmt::format("the results are damaged: {}", error.what()), "create them again with `plumb study`");
  }
}

}  // namespace

std::string csv_text(const std::vector<std::string>& columns, const Json& rows) {
  std::string text = csv_line({columns.begin(), columns.end()});
  for (const Json& row : rows) text += csv_line(row.get<std::vector<Json>>());
  return text;
}

size_t write_csv(const Json& results, const fs::path& directory, const FigureChoice& choice) {
  return from_results(directory, [&] {
    const Json tables = choice.id.empty() ? results.value("tables", Json::array()) : Json::array();
    return write_each(tables, directory, "table-", ".csv",
                      [](const Json& table) { return csv_text(table.at("columns"), table.at("rows")); }) +
           write_each(chosen_figures(results, choice), directory, "figure-", ".csv", figure_csv);
  });
}

size_t write_svg(const Json& results, const fs::path& directory, const FigureChoice& choice) {
  return from_results(directory, [&] {
    const std::vector<std::string> groups = groups_of(results.value("figures", Json::array()));
    return write_each(chosen_figures(results, choice), directory, "figure-", ".svg",
                      [&](const Json& figure) { return figure_svg(figure, groups); });
  });
}

}  // namespace plumb
