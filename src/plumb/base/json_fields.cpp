#include "plumb/base/json_fields.h"

#include <fmt/format.h>

#include <cmath>

#include "plumb/base/error.h"

namespace plumb {

Json JsonWriter::json_of(double value) { return finite_or_null(value); }

Json JsonWriter::json_of(const Duration& value) {
  return value.unit() == Duration::Unit::steps ? Json(value.in_steps()) : Json(value.text());
}

Json JsonWriter::json_of(const NamedNumbers& values) {
  Json object = Json::object();
  for (const auto& [name, number] : values) object[name] = json_of(number);
  return object;
}

void JsonWriter::section(std::string_view key, const std::function<void(Fields&)>& visit, bool written) {
  if (!written) return;
  Json inner = Json::object();
  JsonWriter writer(inner);
  visit(writer);
  object_[std::string(key)] = std::move(inner);
}

void JsonWriter::sections(std::string_view key, size_t count, const std::function<void(size_t)>&,
                          const std::function<void(size_t, Fields&)>& visit) {
  Json list = Json::array();
  for (size_t i = 0; i < count; ++i) {
    Json inner = Json::object();
    JsonWriter writer(inner);
    visit(i, writer);
    list.push_back(std::move(inner));
  }
  object_[std::string(key)] = std::move(list);
}

const Json* JsonReader::find(std::string_view key) const {
  if (!object_.is_object()) throw Error(fmt::format("an object with the key '{}' is missing", key));
  const auto entry = object_.find(key);
  return entry == object_.end() ? nullptr : &*entry;
}

const Json& JsonReader::at(std::string_view key) const {
  const Json* entry = find(key);
  if (entry == nullptr) throw Error(fmt::format("the key '{}' is missing", key));
  return *entry;
}

void JsonReader::refuse(std::string_view key, const char* wanted, const Json& entry) {
  throw Error(fmt::format("'{}' must be {}, not {}", key, wanted, entry.type_name()));
}

void JsonReader::read(std::string_view key, const Json& json, int64_t& value) {
  if (!json.is_number_integer()) refuse(key, "an integer", json);
  value = json.get<int64_t>();
}

void JsonReader::read(std::string_view key, const Json& json, double& value) {
  if (!json.is_number() && !json.is_null()) refuse(key, "a number", json);
  value = to_double(json);
}

void JsonReader::read(std::string_view key, const Json& json, bool& value) {
  if (!json.is_boolean()) refuse(key, "true or false", json);
  value = json.get<bool>();
}

void JsonReader::read(std::string_view key, const Json& json, std::string& value) {
  if (!json.is_string()) refuse(key, "a string", json);
  value = json.get<std::string>();
}

void JsonReader::read(std::string_view key, const Json& json, Duration& value) {
  if (json.is_string()) {
    value = Duration::parse(json.get<std::string>());
  } else {
    int64_t steps = 0;
    read(key, json, steps);
    value = steps;
  }
}

void JsonReader::read(std::string_view key, const Json& json, NamedNumbers& value) {
  if (!json.is_object()) refuse(key, "an object", json);
  value.clear();
  for (const auto& [name, number] : json.items()) read(name, number, value.emplace_back(name, 0).second);
}

void JsonReader::section(std::string_view key, const std::function<void(Fields&)>& visit, bool) {
  const Json* entry = find(key);
  if (entry == nullptr) return;
  JsonReader reader(*entry);
  visit(reader);
}

void JsonReader::sections(std::string_view key, size_t, const std::function<void(size_t)>& resize,
                          const std::function<void(size_t, Fields&)>& visit) {
  const Json* entry = find(key);
  if (entry != nullptr && !entry->is_array()) refuse(key, "a list", *entry);
  resize(entry == nullptr ? 0 : entry->size());
  if (entry == nullptr) return;
  for (size_t i = 0; i < entry->size(); ++i) {
    JsonReader reader((*entry)[i]);
    visit(i, reader);
  }
}

}  // namespace plumb
