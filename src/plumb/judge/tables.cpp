#include "plumb/judge/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "plumb/base/contains.h"
#include "plumb/base/csv.h"
#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/json.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

bool has_number(const Row& row) {
  return std::any_of(row.begin(), row.end(), [](const auto& cell) { return number_in(cell.second).has_value(); });
}

/// Without the blanks around it, with which YOLO's tables are aligned.
std::string trimmed(const std::string& text) {
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

Rows rows_of_table(const fs::path& file) {
  return read_once([file](const TakeRow& take) {
    Record header;
    size_t count = 0;
    const auto take_record = [&](Record record) {
      if (++count == 1) {
        for (std::string& name : record) header.emplace_back(trimmed(name));
        return;
      }
      if (record.size() != header.size())
        throw Error(fmt::format("{}, record {}: has {} fields, the header has {}", file.string(), count, record.size(),
                                header.size()));
      Row row;
      for (size_t column = 0; column < header.size(); ++column) {
        if (!is_missing(record[column])) row.emplace_back(header[column], std::move(record[column]));
      }
      take(row);
    };
    read_records(file, file.extension() == ".tsv" ? '\t' : ',', take_record);
  });
}

/// `with_text`: lines may have text before their objects, or instead of them.
Rows rows_of_objects(const fs::path& file, bool with_text) {
  return read_once([file, with_text](const TakeRow& take) {
    LineReader lines(file, kLogFile);
    while (const auto line = lines.next()) {
      const size_t begin = with_text ? line->find('{') : 0;
      if (line->empty() || begin == std::string_view::npos) continue;
      const Json json = parse_log(line->substr(begin));
      if (json.is_object())
        take(row_of(json));
      else if (!with_text)
        throw Error(fmt::format("{}, line {}: no JSON object", file.string(), lines.count()));
    }
  });
}

Rows rows_of_list(const fs::path& file) {
  constexpr InputLimits kList{.bytes = uint64_t{256} << 20};  // parsed, it takes ten times its size
  Json json = parse_log(read_file(file, kList));
  if (json.is_discarded()) throw Error(fmt::format("{}: is not valid JSON", file.string()));
  if (json.is_object() && json.contains("log_history"))
    json = Json(std::move(json["log_history"]));
  else if (json.is_object() && has_number(row_of(json)))
    json = Json::array({std::move(json)});  // the results of a run
  const auto is_object = [](const Json& one) { return one.is_object(); };
  if (!json.is_array() || std::none_of(json.begin(), json.end(), is_object))
    throw Error(
        fmt::format("{}: holds no numbers and no list of objects, by itself or as \"log_history\"", file.string()));
  return [list = std::move(json)](const TakeRow& take) {
    for (const Json& one : list) {
      if (one.is_object()) take(row_of(one));
    }
  };
}

Rows rows_of_text(const fs::path& file, const std::vector<LinePattern>& patterns) {
  return read_once([file, patterns](const TakeRow& take) {
    LineReader lines(file, kLogFile);
    while (const auto line = lines.next()) {
      for (const LinePattern& pattern : patterns)
        if (const std::optional<Row> row = pattern.match(*line)) take(*row);
    }
  });
}

/// The first lines of a text; fewer of a shorter one, and none of what is no text.
std::vector<std::string> first_lines(const fs::path& file, size_t count = 2) {
  std::vector<std::string> first;
  try {
    LineReader lines(file, kLogFile);
    for (auto line = lines.next(); line && first.size() < count; line = lines.next()) first.emplace_back(*line);
  } catch (const Error&) {
    first.clear();
  }
  return first;
}

bool is_object(std::string_view text) { return text.starts_with('{') && parse_log(text).is_object(); }

/// Whether lines of a log end in an object after a text: "… | INFO | valid | {"epoch": 1, …}".
bool ends_in_object(const std::string& line) {
  const size_t begin = line.find(" | {");
  return begin != std::string::npos && is_object(std::string_view(line).substr(begin + 3));
}

/// Whether two lines are the header and the first record of a table.
bool is_table(const std::vector<std::string>& lines) {
  if (lines.size() < 2) return false;
  const auto commas = [](const std::string& line) { return std::count(line.begin(), line.end(), ','); };
  const std::string field = lines[1].substr(0, lines[1].find(','));
  return commas(lines[0]) > 0 && commas(lines[0]) == commas(lines[1]) && number_in(field);
}

}  // namespace

bool holds_objects(const fs::path& file) {
  const std::vector<std::string> lines = first_lines(file);
  return lines.size() > 1 && std::all_of(lines.begin(), lines.end(), is_object);
}

Rows rows_in_file(const fs::path& file, const std::vector<LinePattern>& patterns) {
  const std::string kind = file.extension().string();
  if (kind == ".csv" || kind == ".tsv") return rows_of_table(file);
  if (kind == ".jsonl" || kind == ".ndjson") return rows_of_objects(file, false);
  if (kind == ".json") return holds_objects(file) ? rows_of_objects(file, false) : rows_of_list(file);
  if (!patterns.empty()) return rows_of_text(file, patterns);
  static constexpr std::array<std::string_view, 3> kLogs = {".log", ".txt", ".out"};
  if (!contains(kLogs, kind)) return {};
  if (holds_objects(file)) return rows_of_objects(file, false);
  if (kind == ".log" && is_table(first_lines(file))) return rows_of_table(file);
  const std::vector<std::string> lines = first_lines(file, 1000);  // a program says much before it trains
  return std::any_of(lines.begin(), lines.end(), ends_in_object) ? rows_of_objects(file, true) : Rows();
}

}  // namespace plumb
