// Results of measurements as JSON and back: numbers, described structs, and lists, maps and optional values of those.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "plumb/base/json_fields.h"

namespace plumb {

template <typename T>
concept HasDescription = requires(Fields& fields, T& value) {
  describe(fields, value);
};

template <typename T>
inline constexpr bool kIsList = false;
template <typename T>
inline constexpr bool kIsList<std::vector<T>> = true;
template <typename T>
inline constexpr bool kIsMap = false;
template <typename T>
inline constexpr bool kIsMap<std::map<std::string, T>> = true;
template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <typename T>
Json result_json(const T& value) {
  if constexpr (HasDescription<T>) {
    return described_json(value);
  } else if constexpr (requires { to_json(value); }) {
    return to_json(value);
  } else if constexpr (kIsOptional<T>) {
    return value ? result_json(*value) : Json();
  } else if constexpr (kIsList<T>) {
    Json list = Json::array();
    for (const auto& each : value) list.push_back(result_json(each));
    return list;
  } else if constexpr (kIsMap<T>) {
    Json object = Json::object();
    for (const auto& [name, each] : value) object[name] = result_json(each);
    return object;
  } else {
    return Json(value);
  }
}

/// Reads what result_json wrote: null is NaN, or the absence of an optional value.
template <typename T>
void read_result(const Json& json, T& value) {
  value = T{};
  if constexpr (HasDescription<T>) {
    value = from_described_json<T>(json);
  } else if constexpr (kIsOptional<T>) {
    if (!json.is_null()) read_result(json, value.emplace());
  } else if constexpr (kIsList<T>) {
    for (const Json& each : json) read_result(each, value.emplace_back());
  } else if constexpr (kIsMap<T>) {
    for (const auto& [name, each] : json.items()) read_result(each, value[name]);
  } else if constexpr (std::is_same_v<T, double>) {
    value = to_double(json);
  } else {
    value = json.get<T>();
  }
}

template <typename T>
T result_of(const Json& json) {
  T value{};
  read_result(json, value);
  return value;
}

}  // namespace plumb
