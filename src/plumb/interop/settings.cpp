#include "plumb/interop/settings.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace plumb {
namespace {

Json object_of(const std::filesystem::path& file) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) {
    throw Error(fmt::format("{}: there is no such file", file.string()),
                "give a folder of a Hugging Face model: config.json, safetensors, tokenizer files");
  }
  Json object = read_json(file, kSettingsFile);
  if (!object.is_object()) throw Error(fmt::format("{}: not an object", file.string()), "copy the file again");
  return object;
}

/// Whether a value is an integer in the range of a model's sizes.
bool is_size(const Json& value) {
  constexpr int64_t kMost = int64_t{1} << 40;  // small multiples do not overflow
  return value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= kMost) &&
         value.get<int64_t>() >= -kMost;
}

}  // namespace

Settings::Settings(const std::filesystem::path& file) : Settings(object_of(file), file.string()) {}

Settings::Settings(Json object, std::string name, std::string prefix)
    : object_(std::move(object)), name_(std::move(name)), prefix_(std::move(prefix)) {}

bool Settings::has(const std::string& key) const { return !value_or_null(object_, key).is_null(); }

const Json& Settings::value(const std::string& key) {
  asked_.insert(key);
  return value_or_null(object_, key);
}

Error Settings::wrong(const std::string& key, const char* wanted) const {
  const char* hint = "correct the file, or copy it again";
  if (!has(key)) return Error(fmt::format("{}: {}{} is missing", name_, prefix_, key), hint);
  return Error(fmt::format("{}: {}{} = {} is not {}", name_, prefix_, key, object_.at(key).dump(), wanted), hint);
}

Error Settings::unsupported(const std::string& key, const std::string& known) const {
  const std::string value = has(key) ? object_.at(key).dump() : std::string("null");
  return Error(fmt::format("{}: {}{} = {} is not supported", name_, prefix_, key, value), "supported: " + known);
}

int64_t Settings::integer(const std::string& key, std::optional<int64_t> fallback) {
  const Json& entry = value(key);
  if (entry.is_null() && fallback) return *fallback;
  if (!is_size(entry)) throw wrong(key, "an integer of a size that a model can have");
  return entry.get<int64_t>();
}

std::vector<int64_t> Settings::integers(const std::string& key) {
  const Json& entry = value(key);
  if (entry.is_null()) return {};
  const Json list = entry.is_array() ? entry : Json::array({entry});
  std::vector<int64_t> all;
  for (const Json& item : list) {
    if (!is_size(item)) throw wrong(key, "an integer or a list of integers");
    all.push_back(item.get<int64_t>());
  }
  return all;
}

double Settings::number(const std::string& key, std::optional<double> fallback) {
  const Json& entry = value(key);
  if (entry.is_null() && fallback) return *fallback;
  if (!entry.is_number() || !std::isfinite(entry.get<double>())) throw wrong(key, "a number");
  return entry.get<double>();
}

bool Settings::flag(const std::string& key, std::optional<bool> fallback) {
  const Json& entry = value(key);
  if (entry.is_null() && fallback) return *fallback;
  if (!entry.is_boolean()) throw wrong(key, "true or false");
  return entry.get<bool>();
}

std::string Settings::text(const std::string& key, const std::optional<std::string>& fallback) {
  const Json& entry = value(key);
  if (entry.is_null() && fallback) return *fallback;
  if (!entry.is_string()) throw wrong(key, "a string");
  return entry.get<std::string>();
}

std::vector<std::string> Settings::texts(const std::string& key) {
  const Json& entry = value(key);
  std::vector<std::string> all;
  if (!entry.is_array()) throw wrong(key, "a list of strings");
  for (const Json& item : entry) {
    if (!item.is_string()) throw wrong(key, "a list of strings");
    all.push_back(item.get<std::string>());
  }
  return all;
}

std::optional<Settings> Settings::section(const std::string& key) {
  const Json& entry = value(key);
  if (entry.is_null()) return {};
  if (!entry.is_object()) throw wrong(key, "an object");
  return Settings(entry, name_, prefix_ + key + ".");
}

void Settings::require(const std::string& key, const Json& wanted) {
  const Json& entry = value(key);
  if (!entry.is_null() && entry != wanted) throw unsupported(key, wanted.dump());
}

void Settings::ignore(std::initializer_list<const char*> keys) { asked_.insert(keys.begin(), keys.end()); }

void Settings::require_all_read() const {
  for (const auto& [key, value] : object_.items()) {
    if (value.is_null() || asked_.count(key) != 0) continue;
    throw Error(fmt::format("{}: {}{} = {} is unknown", name_, prefix_, key, value.dump()),
                "it may change what the model computes; if it does not, remove it from a copy of the file");
  }
}

}  // namespace plumb
