#include "plumb/base/csv.h"

#include <fmt/format.h>

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

}  // namespace plumb
