// Range checks for the options of optimizers and schedule factors.
#pragma once

#include <fmt/format.h>

#include <limits>
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

/// Throws Error, naming the key, unless a float32 number greater than 0: it is added to a divisor that is 0 where
/// gradients are, and 0/0 is NaN.
inline void check_eps(std::string_view key, double value) {
  constexpr double kSmallest = std::numeric_limits<float>::min(), kLargest = std::numeric_limits<float>::max();
  if (value >= kSmallest && value <= kLargest) return;
  throw Error(fmt::format("{} = {} must lie between {:.2g} and {:.2g}", key, value, kSmallest, kLargest),
              "without it, a parameter whose gradient is 0 would become NaN");
}

}  // namespace plumb
