// Tables: comma-separated (RFC 4180) and tab-separated values.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace plumb {

/// A line of a table: its fields.
using Record = std::vector<std::string>;
using TakeRecord = std::function<void(Record record)>;

/// Calls take(record) for each record of a file, without a byte-order mark and empty lines. Where the separator is a
/// comma, a field in double quotes may contain commas, line breaks and doubled quotes; quotes in a field that does not
/// begin with one are text, as they are where it is a tab. Throws Error if the file cannot be read, is not valid UTF-8,
/// ends within quotes, or has a record of more than 16 MiB.
void read_records(const std::filesystem::path& file, char separator, const TakeRecord& take);
std::vector<Record> read_records(const std::filesystem::path& file, char separator);
inline std::vector<Record> read_csv(const std::filesystem::path& file) { return read_records(file, ','); }

}  // namespace plumb
