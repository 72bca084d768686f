// Reads the settings of a tokenizer's components.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "plumb/base/error.h"
#include "plumb/base/json.h"

namespace plumb::tokenization {

using Settings = nlohmann::json;

/// An integer from 0 to 9e15; throws Error on anything else.
inline int64_t whole_number(const Settings& value) {
  if (!value.is_number_integer() || value.get<double>() < 0 || value.get<double>() > 9e15) {
    throw Error("'" + value.dump(-1, ' ', true) + "' is not a whole number");
  }
  return value.get<int64_t>();
}

/// The list `name` in a section; throws Error if it is not a list.
inline const Settings& parts(const Settings& settings, const char* name) {
  const Settings& list = settings.at(name);
  if (!list.is_array()) throw Error(std::string("'") + name + "' is not a list");
  return list;
}

}  // namespace plumb::tokenization
