// Range checks for the options of optimizers and schedule factors.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "plumb/base/error.h"

namespace plumb {

/// Throws Error, naming the key, unless value ≥ smallest.
template <typename T>
void check_at_least(std::string_view key, T value, T smallest) {
  if (!(value >= smallest)) throw Error(fmt::format("{} = {} must be at least {}", key, value, smallest));
}

/// Throws Error, naming the key, unless smallest ≤ value ≤ largest.
template <typename T>
void check_within(std::string_view key, T value, T smallest, T largest) {
  check_at_least(key, value, smallest);
  if (!(value <= largest)) throw Error(fmt::format("{} = {} must be at most {}", key, value, largest));
}

/// Throws Error, naming the key, unless 0 ≤ value < 1.
inline void check_below_one(std::string_view key, double value) {
  if (!(value >= 0 && value < 1)) throw Error(fmt::format("{} = {} must lie in [0, 1)", key, value));
}

}  // namespace plumb
