// What records and states are described with, besides the fields of base/config.h: counts and names of
// enumerators.
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "plumb/base/config.h"
#include "plumb/base/contains.h"
#include "plumb/base/error.h"

namespace plumb {

/// A number of steps, tokens or the like. Throws Error if a document has a negative one.
inline void count(Fields& field, std::string_view key, int64_t& value) {
  field(key, value);
  if (value < 0) throw Error(fmt::format("'{}' = {} is negative", key, value));
}

/// The enumerators of `Enum` with the names that documents have for them.
template <typename Enum, size_t n>
using EnumNames = std::array<std::pair<Enum, const char*>, n>;

template <typename Enum, size_t n>
std::string name_of(Enum value, const EnumNames<Enum, n>& names) {
  const auto* name = find_value(names, value);
  return name == nullptr ? std::string() : *name;
}

/// An enumerator by name. Throws Error if a document has another name.
template <typename Enum, size_t n>
void named(Fields& field, std::string_view key, Enum& value, const EnumNames<Enum, n>& names) {
  std::string text = name_of(value, names);
  field(key, text);
  const auto* found = find_by(names, &std::pair<Enum, const char*>::second, text);
  if (found == nullptr) throw Error(fmt::format("'{}' = \"{}\" is unknown", key, text));
  value = found->first;
}

}  // namespace plumb
