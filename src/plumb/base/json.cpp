#include "plumb/base/json.h"

#include <fmt/format.h>

#include <limits>

#include "plumb/base/error.h"
#include "plumb/base/files.h"

namespace plumb {
namespace {

std::string& command_line_storage() {
  static std::string line = "plumb";
  return line;
}

std::string shell_quoted(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\n\"'\\$&|;<>()*?#~`") == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) c == '\'' ? quoted += "'\\''" : quoted += c;
  return quoted + "'";
}

}  // namespace

void set_command_line(int argc, const char* const* argv) {
  std::string line = "plumb";
  for (int i = 1; i < argc; ++i) line += " " + shell_quoted(argv[i]);
  command_line_storage() = line;
}

const std::string& command_line() { return command_line_storage(); }

Json make_document(std::string_view name, int version) {
  Json document;
  document["schema"] = fmt::format("plumb.{}/{}", name, version);
  document["command"] = command_line();
  return document;
}

Json read_json(const std::filesystem::path& path) {
  try {
    return Json::parse(read_file(path));
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(fmt::format("{}: not valid JSON at byte {}", path.string(), error.byte),
                "the file may be truncated; create it again");
  }
}

double number_of(const Json& json) {
  if (json.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!json.is_number()) throw Error(fmt::format("expected a number, not {}", json.dump()));
  return json.get<double>();
}

std::vector<double> numbers_of(const Json& json) {
  std::vector<double> values;
  for (const Json& value : json) values.push_back(number_of(value));
  return values;
}

void write_json(const std::filesystem::path& path, const Json& value) {
  write_file_atomic(path, value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace plumb
