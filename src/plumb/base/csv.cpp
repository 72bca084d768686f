#include "plumb/base/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plumb/base/error.h"
#include "plumb/base/line_reader.h"

namespace plumb {

void read_records(const std::filesystem::path& file, char separator, const TakeRecord& take) {
  constexpr size_t kLongest = size_t{16} << 20;
  LineReader lines(file, kLogFile);
  Record record(1);    // its last field is being read
  bool begun = false;  // whether anything of the field has been read
  bool quoted = false;
  bool closed = false;  // whether the last byte was a closing quote
  size_t size = 0;
  while (const auto line = lines.next()) {
    size += line->size();
    if (size > kLongest)
      throw Error(fmt::format("{}:{}: a record is longer than 16 MiB", file.string(), lines.count()));
    for (const char byte : *line) {
      if (byte == '"' && separator == ',' && (quoted || closed || !begun)) {
        // In a quoted field, a doubled quote is one quote: the first closes the field, the second reopens it. In the
        // middle of another field, quotes are text.
        if (closed) record.back() += '"';
        quoted = !quoted;
        closed = !quoted;
        begun = true;
      } else if (byte == separator && !quoted) {
        record.emplace_back();
        begun = closed = false;
      } else {
        record.back() += byte;
        begun = true;
        closed = false;
      }
    }
    if (quoted) {
      record.back() += lines.ended_with_cr() ? "\r\n" : "\n";
      continue;
    }
    if (record.size() > 1 || !record[0].empty()) take(std::exchange(record, Record(1)));
    begun = closed = false;
    size = 0;
  }
  if (quoted) throw Error(fmt::format("{}: ends within a field in quotes", file.string()));
}

std::vector<Record> read_records(const std::filesystem::path& file, char separator) {
  std::vector<Record> records;
  read_records(file, separator, [&](Record record) { records.push_back(std::move(record)); });
  return records;
}

void each_record(const std::filesystem::path& file, const std::vector<Record>& records,
                 const std::vector<std::string>& names,
                 const std::function<void(const std::vector<std::string>& columns)>& take) {
  constexpr const char* kHint = "docs/evaluation.md describes the files";
  if (records.empty()) throw Error(fmt::format("{}: is empty", file.string()));
  const Record& header = records.front();
  std::vector<size_t> numbers;
  for (const std::string& name : names) {
    const auto found = std::find(header.begin(), header.end(), name);
    if (found == header.end()) throw Error(fmt::format("{}: has no column '{}'", file.string(), name), kHint);
    numbers.push_back(static_cast<size_t>(found - header.begin()));
  }
  for (size_t i = 1; i < records.size(); ++i) {
    if (records[i].size() != header.size()) {
      throw Error(fmt::format("{}, record {}: has {} fields, the header has {}", file.string(), i + 1,
                              records[i].size(), header.size()));
    }
    std::vector<std::string> columns;
    for (const size_t number : numbers) columns.push_back(records[i][number]);
    try {
      take(columns);
    } catch (const Error& error) {
      throw Error(fmt::format("{}, record {}: {}", file.string(), i + 1, error.what()), kHint);
    }
  }
}

}  // namespace plumb
