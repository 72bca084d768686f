// Results of measurements as JSON and back: numbers, described structs, and lists, maps and optional values of those.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plumb/base/json_fields.h"

namespace plumb {

template <typename T>
concept HasDescription = requires(Fields& fields, T& value) {
  describe(fields, value);
};

template <typename T>
Json result_json(const std::vector<T>& values);
template <typename T>
Json result_json(const std::map<std::string, T>& values);
template <typename T>
Json result_json(const std::optional<T>& value);
template <typename T>
void read_result(const Json& json, std::vector<T>& values);
template <typename T>
void read_result(const Json& json, std::map<std::string, T>& values);
template <typename T>
void read_result(const Json& json, std::optional<T>& value);
inline void read_result(const Json& json, double& value) { value = number_of(json); }

template <typename T>
Json result_json(const T& value) {
  if constexpr (HasDescription<T>) {
    return described_json(value);
  } else if constexpr (requires { to_json(value); }) {
    return to_json(value);
  } else {
    return Json(value);
  }
}
template <typename T>
Json result_json(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& each : values) list.push_back(result_json(each));
  return list;
}
template <typename T>
Json result_json(const std::map<std::string, T>& values) {
  Json object = Json::object();
  for (const auto& [name, each] : values) object[name] = result_json(each);
  return object;
}

template <typename T>
Json result_json(const std::optional<T>& value) {
  return value ? result_json(*value) : Json();
}

/// Reads what result_json wrote: null is NaN, or the absence of an optional value.
template <typename T>
void read_result(const Json& json, T& value) {
  if constexpr (HasDescription<T>) {
    value = from_described_json<T>(json);
  } else {
    value = json.get<T>();
  }
}
template <typename T>
void read_result(const Json& json, std::vector<T>& values) {
  values.clear();
  for (const Json& each : json) read_result(each, values.emplace_back());
}
template <typename T>
void read_result(const Json& json, std::map<std::string, T>& values) {
  values.clear();
  for (const auto& [name, each] : json.items()) read_result(each, values[name]);
}
template <typename T>
void read_result(const Json& json, std::optional<T>& value) {
  value.reset();
  if (!json.is_null()) read_result(json, value.emplace());
}

template <typename T>
T result_of(const Json& json) {
  T value{};
  read_result(json, value);
  return value;
}

}  // namespace plumb
