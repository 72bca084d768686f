// Tables: comma-separated (RFC 4180) and tab-separated values, and their columns by name.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace plumb {

/// The records of a file, without a byte-order mark and empty lines. A field in double quotes may contain commas, line
/// breaks and doubled quotes; quotes in a field that does not begin with one are text. Throws Error if the file cannot
/// be read, is not valid UTF-8, or ends within quotes.
std::vector<std::vector<std::string>> read_csv(const std::filesystem::path& file);

/// The records of a file with one record per line, its fields separated by tabs; empty lines are skipped. Throws Error
/// if the file cannot be read or is not valid UTF-8.
std::vector<std::vector<std::string>> read_tsv(const std::filesystem::path& file);

/// Calls take(columns) with the fields of these names, of each record of a file after the header. Throws Error, naming
/// the file, if there is no header, it lacks a name, or a record has a different number of fields, and, naming the
/// record, if `take` throws Error.
void each_record(const std::filesystem::path& file, const std::vector<std::vector<std::string>>& records,
                 const std::vector<std::string>& names,
                 const std::function<void(const std::vector<std::string>& columns)>& take);

}  // namespace plumb
