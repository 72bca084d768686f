#include "plumb/judge/log_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "plumb/base/contains.h"
#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/judge/log_records.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

/// Without the blanks around it, with which YOLO's tables are aligned.
std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
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

LogFile::Kind LogFile::kind() const {
  const std::string extension = file_.extension().string();
  if (extension == ".csv" || extension == ".tsv") return Kind::fields;
  if (extension == ".jsonl" || extension == ".ndjson") return Kind::objects;
  if (extension == ".json") return holds_objects(file_) ? Kind::objects : Kind::list;
  if (!keys_.lines.empty()) return Kind::text;
  static constexpr std::array<std::string_view, 3> kLogs = {".log", ".txt", ".out"};
  if (!contains(kLogs, extension)) return Kind::none;
  if (holds_objects(file_)) return Kind::objects;
  if (extension == ".log" && is_table(first_lines(file_))) return Kind::fields;
  const std::vector<std::string> lines = first_lines(file_, 1000);  // a program says much before it trains
  return std::any_of(lines.begin(), lines.end(), ends_in_object) ? Kind::objects_after_text : Kind::none;
}

const std::vector<RunRecord>& LogFile::records() & {
  const std::string stamp = file_stamp(file_);
  if (!stamp.empty() && stamp == stamp_) return records_;
  stamp_.clear();
  records_.clear();
  if (place_.offset == 0 || last_bytes() != last_) {
    table_ = LogTable(table_.name(), keys_.settings);
    header_.clear();
    place_ = {};
    kind_ = kind();
  }
  if (kind_ == Kind::list)
    read_list();
  else if (kind_ != Kind::none)
    read_lines();
  records_ = records_of(table_);
  if (records_.size() == 1) {
    records_[0].place = file_.parent_path();
    const std::string folder = file_.parent_path().filename().string();
    if (file_.extension() == ".json" && folder.starts_with("checkpoint-")) records_[0].state = folder;
  }
  stamp_ = stamp;
  return records_;
}

/// The last of the bytes that have been read, as they are now.
std::string LogFile::last_bytes() const {
  constexpr uint64_t kMost = 4096;
  std::string bytes(std::min(place_.offset, kMost), '\0');
  const Descriptor file = open_input(file_, kLogFile);
  const ssize_t count =
      ::pread(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(place_.offset - bytes.size()));
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  return bytes;
}

void LogFile::read_list() {
  constexpr InputLimits kList{.bytes = uint64_t{256} << 20};  // parsed, it takes ten times its size
  Json json = parse_log(read_file(file_, kList));
  if (json.is_discarded()) throw Error(fmt::format("{}: is not valid JSON", file_.string()));
  const auto is_object = [](const Json& one) { return one.is_object(); };
  if (json.is_object() && json.contains("log_history")) {
    json = Json(std::move(json["log_history"]));
  } else if (json.is_object()) {  // the results of a run
    table_.add_object(json);
    const auto cells = table_.line(0);
    if (std::any_of(cells.begin(), cells.end(), [](const LogTable::Cell& cell) { return cell.is_number != 0; })) return;
  }
  if (!json.is_array() || std::none_of(json.begin(), json.end(), is_object))
    throw Error(
        fmt::format("{}: holds no numbers and no list of objects, by itself or as \"log_history\"", file_.string()));
  for (const Json& one : json) {
    if (one.is_object()) table_.add_object(one);
  }
}

void LogFile::read_lines() {
  table_.keep_lines(place_.rows);  // the last line may have gone on
  records_read_ = place_.records;
  LineReader lines(file_, kLogFile, place_.offset, place_.lines);
  RecordParser parser(file_.string(), file_.extension() == ".tsv" ? '\t' : ',');
  while (const auto line = lines.next()) {
    if (take_line(*line, lines, parser) && lines.has_ended())
      place_ = {lines.offset(), lines.count(), records_read_, table_.lines()};
  }
  parser.finish();
  last_ = last_bytes();
}

/// False within a record.
bool LogFile::take_line(std::string_view line, const LineReader& lines, RecordParser& parser) {
  if (kind_ == Kind::fields) {
    constexpr size_t kLong = size_t{16} << 20;
    const char separator = file_.extension() == ".tsv" ? '\t' : ',';
    if (parser.is_within() || line.size() > kLong || (separator == ',' && line.find('"') != std::string_view::npos)) {
      parser.at_line(lines.count());
      const std::optional<Record> record = parser.add(line, lines.ended_with_cr() ? "\r\n" : "\n");
      if (record) take_fields({record->begin(), record->end()});
      return record.has_value();
    }
    fields_.clear();
    for (size_t begin = 0, end = 0; begin <= line.size(); begin = end + 1) {
      end = std::min(line.find(separator, begin), line.size());
      fields_.push_back(line.substr(begin, end - begin));
    }
    take_fields(fields_);
    return true;
  }
  if (kind_ == Kind::text) {
    for (const LinePattern& pattern : keys_.lines) {
      const std::optional<Row> row = pattern.match(line);
      if (!row) continue;
      for (const auto& [name, text] : *row) table_.add(table_.column(name), text);
      table_.end_line();
    }
  } else {
    take_object(line, lines);
  }
  return true;
}

void LogFile::take_fields(const std::vector<std::string_view>& fields) {
  if (fields.size() == 1 && fields[0].empty()) return;
  if (++records_read_ == 1) {
    for (const std::string_view name : fields) header_.push_back(table_.column(trimmed(name)));
    return;
  }
  if (fields.size() != header_.size())
    throw Error(fmt::format("{}, record {}: has {} fields, the header has {}", file_.string(), records_read_,
                            fields.size(), header_.size()));
  for (size_t i = 0; i < fields.size(); ++i) {
    if (!is_missing(fields[i])) table_.add(header_[i], fields[i]);
  }
  table_.end_line();
}

void LogFile::take_object(std::string_view line, const LineReader& lines) {
  const size_t begin = kind_ == Kind::objects ? 0 : line.find('{');
  if (line.empty() || begin == std::string_view::npos) return;
  if (!table_.add_json(line.substr(begin)) && kind_ == Kind::objects)
    throw Error(fmt::format("{}, line {}: no JSON object", file_.string(), lines.count()));
}

}  // namespace plumb
