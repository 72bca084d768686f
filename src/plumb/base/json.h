// JSON documents: one reader, one writer. Every document says its schema and the command that made it.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace plumb {

/// Keys keep the order in which they were written, so that files read well and diff well.
using Json = nlohmann::ordered_json;

/// The command line of this process, as documents record it: valid UTF-8 whatever was typed. Set once by main().
void set_command_line(int argc, const char* const* argv);
const std::string& command_line();

/// A document that opens with `"schema": "plumb.NAME/VERSION"` and `"command"`.
Json make_document(std::string_view name, int version);

/// Parses a file. Throws Error naming the file and the byte where the JSON ends to be valid.
Json read_json(const std::filesystem::path& path);

[[noreturn]] void throw_unexpected_shape(const std::filesystem::path& path, const nlohmann::json::exception& error);

/// Calls `take` with the JSON in a file. Where that meets another shape than it expects, throws Error naming the file.
template <typename Take>
auto take_json(const std::filesystem::path& path, const Take& take) {
  const Json json = read_json(path);
  try {
    return take(json);
  } catch (const nlohmann::json::exception& error) {
    throw_unexpected_shape(path, error);
  }
}

/// A number, or NaN for the null that write_json makes of what is not finite. Throws Error on anything else.
double number_of(const Json& json);
/// The same of an array.
std::vector<double> numbers_of(const Json& json);

/// Writes with two spaces of indentation, atomically; infinities and NaN become null.
void write_json(const std::filesystem::path& path, const Json& value);

}  // namespace plumb
