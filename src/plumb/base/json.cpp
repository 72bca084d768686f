#include "plumb/base/json.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "plumb/base/error.h"
#include "plumb/base/files.h"
#include "plumb/base/input.h"

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

/// The message without its prefix "[json.exception.….406] ".
std::string without_code(const nlohmann::json::exception& error) {
  const std::string text = error.what();
  const size_t end = text.find("] ");
  return end == std::string::npos ? text : text.substr(end + 2);
}

}  // namespace

void set_command_line(int argc, const char* const* argv) {
  std::string line = "plumb";
  for (int i = 1; i < argc; ++i) line += " " + shell_quoted(argv[i]);
  // Invalid UTF-8 becomes U+FFFD, since JSON cannot contain them.
  command_line_storage() = Json::parse(Json(line).dump(-1, ' ', false, Json::error_handler_t::replace));
}

const std::string& command_line() { return command_line_storage(); }

Json make_document(std::string_view name, int version) {
  Json document;
  document["schema"] = fmt::format("plumb.{}/{}", name, version);
  document["command"] = command_line();
  return document;
}

Json finite_or_null(std::optional<double> value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

bool nests_too_deeply(std::string_view json) {
  constexpr int kDeepest = 64;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepest) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

Json parse_or_discard(std::string_view text) {
  if (nests_too_deeply(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

Json read_json(const std::filesystem::path& path, const InputLimits& limits) {
  const std::string text = read_file(path, limits);
  if (nests_too_deeply(text)) throw Error(fmt::format("{}: nested too deeply", path.string()));
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(fmt::format("{}: not valid JSON at byte {}", path.string(), error.byte),
                "the file may be truncated; create it again");
  } catch (const nlohmann::json::exception& error) {  // a number too large for a double
    throw Error(fmt::format("{}: cannot be read: {}", path.string(), without_code(error)));
  }
}

std::vector<std::string> read_texts(const std::string& file) {
  std::vector<std::string> texts = file == "-" ? read_standard_input() : read_lines(file);
  for (size_t i = 0; file.ends_with(".jsonl") && i < texts.size(); ++i) {
    const Json text = parse_or_discard(texts[i]);
    if (!text.is_string())
      throw Error(fmt::format("{}:{}: is not a JSON string", file, i + 1), "write one on each line, in quotes");
    texts[i] = text.get<std::string>();
  }
  return texts;
}

void throw_unexpected_shape(const std::filesystem::path& path, const nlohmann::json::exception& error) {
  throw Error(fmt::format("{}: unexpected structure: {}", path.string(), without_code(error)));
}

double to_double(const Json& json) {
  if (json.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (!json.is_number()) throw Error(fmt::format("expected a number, not {}", json.dump()));
  return json.get<double>();
}

int64_t to_count(const Json& json) {
  constexpr int64_t kLargest = int64_t{1} << 53;
  const bool fits = json.is_number_unsigned()
                        ? json.get<uint64_t>() <= kLargest
                        : json.is_number_integer() && json.get<int64_t>() >= 0 && json.get<int64_t>() <= kLargest;
  if (!fits) throw Error(fmt::format("expected a whole number from 0 to 2^53, not {}", json.dump()));
  return json.get<int64_t>();
}

std::string json_text(const Json& value) { return value.dump(2, ' ', false, Json::error_handler_t::replace) + '\n'; }

void write_json(const std::filesystem::path& path, const Json& value) { write_file_atomic(path, json_text(value)); }

}  // namespace plumb
