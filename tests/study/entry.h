// Finds a part of a study's results.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "plumb/base/json.h"

namespace plumb::test {

/// Returns the object of the array `list` in which `key` has this value. Throws std::out_of_range if no object matches.
template <typename List>
List& entry(List& list, const char* key, std::string_view value) {
  for (auto& each : list) {
    if (each[key] == value) return each;
  }
  throw std::out_of_range(std::string(value));
}

}  // namespace plumb::test
