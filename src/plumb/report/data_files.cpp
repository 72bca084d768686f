#include "plumb/report/data_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
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

std::string latex_text(std::string_view text) {
  // A bracket or a star would belong to the end of the line before.
  static const std::map<char, std::string> escapes = {{'\\', "\\textbackslash{}"},
                                                      {'~', "\\textasciitilde{}"},
                                                      {'^', "\\textasciicircum{}"},
                                                      {'\n', " "},
                                                      {'[', "{[}"},
                                                      {'*', "{*}"}};
  std::string escaped;
  for (const char c : text) {
    const auto found = escapes.find(c);
    if (found != escapes.end()) {
      escaped += found->second;
    } else {
      if (std::string_view("&%$#_{}").find(c) != std::string_view::npos) escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

/// An id as the name of a file or a label: letters, digits, dots, dashes and underscores.
std::string plain_name(std::string id) {
  for (char& c : id)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_') c = '-';
  return id;
}

/// "$-0.01235$", "$1.2\cdot10^{-7}$"; a dash if the cell is missing.
std::string latex_cell(const Json& cell) {
  if (cell.is_null()) return "--";
  if (cell.is_string()) return latex_text(cell.get<std::string>());
  if (!cell.is_number()) return latex_text(cell.dump());
  std::string number = cell.is_number_float() ? fmt::format("{:.4g}", cell.get<double>()) : cell.dump();
  if (const size_t e = number.find('e'); e != std::string::npos)
    number = fmt::format("{}\\cdot10^{{{}}}", number.substr(0, e), std::stoi(number.substr(e + 1)));
  return '$' + number + '$';
}

/// The title as a sentence, and the caption, if there is one.
std::vector<std::string> texts_of(const Json& table) {
  std::vector<std::string> texts = {table.value("title", "") + "."};
  if (const std::string caption = table.value("caption", ""); !caption.empty()) texts.push_back(caption);
  return texts;
}

std::string latex_table(const Json& table) {
  const auto columns = table.at("columns").get<std::vector<std::string>>();
  const Json& rows = table.at("rows");
  std::string alignment;
  for (size_t column = 0; column < columns.size(); ++column) {
    alignment += std::all_of(rows.begin(), rows.end(),
                             [&](const Json& row) { return row.at(column).is_number() || row.at(column).is_null(); })
                     ? 'r'
                     : 'l';
  }
  const auto line = [](const std::vector<std::string>& cells) { return join(cells, " & ") + " \\\\\n"; };
  std::vector<std::string> head;
  for (const std::string& name : columns) head.push_back(latex_text(name));
  std::string body;
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    for (const Json& cell : row) cells.push_back(latex_cell(cell));
    body += line(cells);
  }
  return fmt::format(
      "% \\usepackage{{booktabs}}\n\\begin{{table}}\n\\centering\n\\caption{{{}}}\n\\label{{tab:{}}}\n"
      "\\begin{{tabular}}{{{}}}\n\\toprule\n{}\\midrule\n{}\\bottomrule\n\\end{{tabular}}\n\\end{{table}}\n",
      latex_text(join(texts_of(table), " ")), plain_name(table.value("id", "")), alignment, line(head), body);
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

size_t write_latex(const Json& results, const fs::path& directory) {
  return from_results(directory, [&] {
    return write_each(results.value("tables", Json::array()), directory, "table-", ".tex", latex_table);
  });
}

}  // namespace plumb
