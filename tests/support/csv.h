// The records of a table in a file.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "plumb/base/csv.h"
#include "plumb/base/input.h"

namespace plumb::test {

/// Calls take(record) for each record of a file, without a byte-order mark and empty lines.
inline void read_records(const std::filesystem::path& file, char separator,
                         const std::function<void(Record record)>& take) {
  LineReader lines(file, kLogFile);
  RecordParser parser(file.string(), separator);
  while (const auto line = lines.next()) {
    auto record = parser.add(*line, lines.ended_with_cr() ? "\r\n" : "\n");
    if (record && (record->size() > 1 || !record->front().empty())) take(*std::move(record));
  }
  parser.finish();
}

inline std::vector<Record> read_records(const std::filesystem::path& file, char separator) {
  std::vector<Record> records;
  read_records(file, separator, [&](Record record) { records.push_back(std::move(record)); });
  return records;
}

}  // namespace plumb::test
