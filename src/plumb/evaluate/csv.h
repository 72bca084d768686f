// Comma-separated values (RFC 4180).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace plumb {

/// The records of a file. A field in double quotes may contain commas, line breaks and doubled quotes. Throws Error if
/// the file cannot be read, is not valid UTF-8, or ends within quotes.
std::vector<std::vector<std::string>> read_csv(const std::filesystem::path& file);

}  // namespace plumb
