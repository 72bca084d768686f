// JSON documents: one reader, one writer. Every document states its schema and the command that produced it.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/input.h"
#include "plumb/base/ordered_map.h"

namespace plumb {

/// Keys keep their insertion order, so that files are readable and diff well.
using Json = nlohmann::basic_json<OrderedMap>;

/// The command line of this process, as recorded in documents: always valid UTF-8. Set once by plumb_main().
void set_command_line(int argc, const char* const* argv);
const std::string& command_line();

/// A document that begins with `"schema": "plumb.NAME/VERSION"` and `"command"`.
Json make_document(std::string_view name, int version);

/// The number; null for infinity, NaN and an empty optional.
Json finite_or_null(std::optional<double> value);

/// True if the lists and objects of a document nest deeper than 64 levels, which no format that Plumb reads does.
/// Functions that walk over JSON are recursive, so check the depth first.
bool nests_too_deeply(std::string_view json);

/// Parses text; discarded (Json::is_discarded) if it is not valid JSON or nests too deeply.
Json parse_or_discard(std::string_view text);

/// Parses a file. Throws Error naming the file and the offset of the first invalid byte, if it nests too deeply, and if
/// it cannot be read within the limits.
Json read_json(const std::filesystem::path& path, const InputLimits& limits = kDocumentFile);

/// The texts that a command reads: the JSON strings of a FILE.jsonl, one on each line, which may contain line breaks;
/// else the lines of a file or, for "-", of standard input. Throws Error on a line of FILE.jsonl that is something
/// else, and as LineReader does.
std::vector<std::string> read_texts(const std::string& file);

/// Throws Error naming the file and what `error` says about its structure.
[[noreturn]] void throw_unexpected_shape(const std::filesystem::path& path, const nlohmann::json::exception& error);

/// Calls `take` with the JSON in a file. Throws Error naming the file if it does not have the structure that `take`
/// expects.
template <typename Take>
auto take_json(const std::filesystem::path& path, const Take& take) {
  const Json json = read_json(path);
  try {
    return take(json);
  } catch (const nlohmann::json::exception& error) {
    throw_unexpected_shape(path, error);
  }
}

/// The value of a key in a JSON object, sorted or ordered; null if the key is missing or `object` is not an object.
template <typename Object, typename Key>
const Object& value_or_null(const Object& object, const Key& key) {
  static const Object kNull;
  const auto entry = object.find(key);
  return entry == object.end() ? kNull : *entry;
}

/// A setting such as "do_lower_case" of an object of either kind of JSON; `otherwise` if it is absent or null. Throws
/// Error if it has another type.
template <typename Value, typename Object>
Value setting_or(const Object& settings, const char* name, Value otherwise) {
  const Object& value = value_or_null(settings, name);
  if (value.is_null()) return otherwise;
  try {
    return value.template get<Value>();
  } catch (const nlohmann::json::exception&) {
    throw Error(std::string("the setting '") + name + "' has the wrong type");
  }
}

/// A number, or NaN for the null that write_json writes for values that are not finite. Throws Error on anything else.
double to_double(const Json& json);

/// A count such as a number of steps: a whole number from 0 to 2^53, up to which every reader of JSON is exact. Throws
/// Error on anything else.
int64_t to_count(const Json& json);

/// A document as people and files have it: two spaces of indentation and a line end; null for infinities and NaN,
/// U+FFFD for what is not UTF-8, such as a path.
std::string json_text(const Json& value);

/// Writes the same, atomically.
void write_json(const std::filesystem::path& path, const Json& value);

}  // namespace plumb
