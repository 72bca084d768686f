#include "plumb/base/json_fields.h"

#include <fmt/format.h>

#include <cmath>

#include "plumb/base/error.h"

namespace plumb {
namespace {

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json duration_json(const Duration& value) {
  return value.unit() == Duration::Unit::steps ? Json(value.in_steps()) : Json(value.text());
}

[[noreturn]] void refuse(std::string_view key, const char* wanted, const Json& found) {
  throw Error(fmt::format("'{}' must be {}, not {}", key, wanted, found.type_name()));
}

int64_t integer_in(std::string_view key, const Json& json) {
  if (!json.is_number_integer()) refuse(key, "an integer", json);
  return json.get<int64_t>();
}

double real_in(std::string_view key, const Json& json) {
  if (!json.is_number() && !json.is_null()) refuse(key, "a number", json);
  return number_of(json);
}

std::string text_in(std::string_view key, const Json& json) {
  if (!json.is_string()) refuse(key, "a string", json);
  return json.get<std::string>();
}

Duration duration_in(std::string_view key, const Json& json) {
  return json.is_string() ? Duration::parse(json.get<std::string>()) : Duration(integer_in(key, json));
}

template <typename T, typename Element>
void list(std::string_view key, const Json& json, std::vector<T>& values, const Element& element) {
  if (!json.is_array()) refuse(key, "a list", json);
  values.clear();
  values.reserve(json.size());
  for (const Json& each : json) values.push_back(element(key, each));
}

}  // namespace

void JsonWriter::operator()(std::string_view key, double& value) { put(key, finite_or_null(value)); }
void JsonWriter::operator()(std::string_view key, Duration& value) { put(key, duration_json(value)); }

void JsonWriter::operator()(std::string_view key, std::vector<Duration>& value) {
  Json list = Json::array();
  for (const Duration& each : value) list.push_back(duration_json(each));
  put(key, std::move(list));
}

void JsonWriter::operator()(std::string_view key, std::vector<double>& value) {
  Json list = Json::array();
  for (const double each : value) list.push_back(finite_or_null(each));
  put(key, std::move(list));
}

void JsonWriter::operator()(std::string_view key, std::optional<int64_t>& value) {
  if (value) put(key, *value);
}
void JsonWriter::operator()(std::string_view key, std::optional<double>& value) {
  if (value) put(key, finite_or_null(*value));
}

void JsonWriter::operator()(std::string_view key, NamedNumbers& value) {
  Json object = Json::object();
  for (const auto& [name, number] : value) object[name] = finite_or_null(number);
  put(key, std::move(object));
}

void JsonWriter::section(std::string_view key, const std::function<void(Fields&)>& visit, bool written) {
  if (!written) return;
  Json inner = Json::object();
  JsonWriter writer(inner);
  visit(writer);
  put(key, std::move(inner));
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
  put(key, std::move(list));
}

const Json* JsonReader::find(std::string_view key) const {
  if (!object_.is_object()) throw Error(fmt::format("an object with the key '{}' is missing", key));
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

const Json& JsonReader::at(std::string_view key) const {
  const Json* found = find(key);
  if (found == nullptr) throw Error(fmt::format("the key '{}' is missing", key));
  return *found;
}

void JsonReader::operator()(std::string_view key, int64_t& value) { value = integer_in(key, at(key)); }
void JsonReader::operator()(std::string_view key, double& value) { value = real_in(key, at(key)); }
void JsonReader::operator()(std::string_view key, std::string& value) { value = text_in(key, at(key)); }
void JsonReader::operator()(std::string_view key, Duration& value) { value = duration_in(key, at(key)); }

void JsonReader::operator()(std::string_view key, bool& value) {
  const Json& json = at(key);
  if (!json.is_boolean()) refuse(key, "true or false", json);
  value = json.get<bool>();
}

void JsonReader::operator()(std::string_view key, std::vector<Duration>& value) { list(key, at(key), value, duration_in); }
void JsonReader::operator()(std::string_view key, std::vector<int64_t>& value) { list(key, at(key), value, integer_in); }
void JsonReader::operator()(std::string_view key, std::vector<double>& value) { list(key, at(key), value, real_in); }
void JsonReader::operator()(std::string_view key, std::vector<std::string>& value) { list(key, at(key), value, text_in); }

void JsonReader::operator()(std::string_view key, std::optional<int64_t>& value) {
  const Json* found = find(key);
  value = found == nullptr ? std::nullopt : std::optional(integer_in(key, *found));
}
void JsonReader::operator()(std::string_view key, std::optional<double>& value) {
  const Json* found = find(key);
  value = found == nullptr ? std::nullopt : std::optional(real_in(key, *found));
}

void JsonReader::operator()(std::string_view key, NamedNumbers& value) {
  const Json& object = at(key);
  if (!object.is_object()) refuse(key, "an object", object);
  value.clear();
  for (const auto& [name, number] : object.items()) value.emplace_back(name, real_in(name, number));
}

void JsonReader::section(std::string_view key, const std::function<void(Fields&)>& visit, bool) {
  const Json* found = find(key);
  if (found == nullptr) return;
  JsonReader reader(*found);
  visit(reader);
}

void JsonReader::sections(std::string_view key, size_t, const std::function<void(size_t)>& resize,
                          const std::function<void(size_t, Fields&)>& visit) {
  const Json* found = find(key);
  if (found != nullptr && !found->is_array()) refuse(key, "a list", *found);
  resize(found == nullptr ? 0 : found->size());
  if (found == nullptr) return;
  for (size_t i = 0; i < found->size(); ++i) {
    JsonReader reader((*found)[i]);
    visit(i, reader);
  }
}

}  // namespace plumb
