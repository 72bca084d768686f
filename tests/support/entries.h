// The entries of JSON lists and objects, such as a result's figures, tables and verdicts.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/base/json.h"

namespace plumb::test {

/// The object of the array `list` in which `key` has this value. Throws std::out_of_range if no object matches.
template <typename List>
List& entry(List& list, const char* key, std::string_view value) {
  for (auto& each : list) {
    if (each[key] == value) return each;
  }
  throw std::out_of_range(std::string(value));
}

inline const Json& with_id(const Json& list, std::string_view id) { return entry(list, "id", id); }

inline std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

}  // namespace plumb::test
