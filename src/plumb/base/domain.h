// The values that a key may have: bounds of a number, names to choose from, and what a list must be like.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/base/duration.h"

namespace plumb {

/// Stated with a key in its struct's `describe`, and used for checks, error messages, documentation and completion.
/// Numbers are finite in any case. In a list, it applies to each element.
struct Domain {
  double smallest = -std::numeric_limits<double>::infinity();
  double largest = std::numeric_limits<double>::infinity();
  bool above = false;                // the smallest is excluded
  bool below = false;                // the largest is excluded
  std::vector<std::string> choices;  // of a string; empty: any
  std::string kind;                  // the registry that the choices are names of, such as "norm"; empty: none
  bool open = false;                 // other strings than the choices that contain `sign` are checked elsewhere
  std::string_view sign = {};
  bool filled = false;         // a list has elements
  bool distinct = false;       // the elements of a list differ
  bool any_type = false;       // numbers and booleans stand for their text
  std::string_view unit = {};  // "seconds"

  [[nodiscard]] Domain in(std::string_view the_unit) const;
  /// For lists: at least one element, no two of them equal.
  [[nodiscard]] Domain each_once() const;
  [[nodiscard]] Domain at_least_one() const;
  [[nodiscard]] Domain no_two_equal() const;
  /// Further strings, such as "none" beside the names of norms.
  [[nodiscard]] Domain or_value(std::string choice) const;
  /// For strings that stand for values of other types: numbers and booleans are read as their text.
  [[nodiscard]] Domain of_any_type() const;
  /// Other strings with `sign` in them are left to whoever uses them; without one, the choices are suggestions.
  [[nodiscard]] Domain open_choices(std::string_view the_sign = {}) const;
};

/// Counts are at most this, so that no product of two overflows.
inline constexpr int64_t kLargestCount = 1'000'000'000;

Domain at_least(double smallest);
Domain above(double bound);
/// smallest ≤ value ≤ largest
Domain within(double smallest, double largest);
/// 0 ≤ value < 1
Domain below_one();
/// A float32 number greater than 0: it is added to a divisor that is 0 where gradients are, and 0/0 is NaN.
Domain epsilon();
/// smallest ≤ value ≤ kLargestCount; durations in steps, the others being positive anyway.
Domain count_from(int64_t smallest);
Domain one_of(std::vector<std::string> choices);
/// The names of a registry.
template <typename Registry>
Domain name_in(const Registry& registry) {
  Domain domain = one_of(registry.names());
  domain.kind = registry.kind();
  return domain;
}

/// Why a value is outside of a domain: "must be at least 1"; empty if it lies in it. `hint` suggests a choice.
struct Violation {
  std::string message;
  std::string hint;
};
std::optional<Violation> violation_of(const Domain& domain, std::string_view key, int64_t value);
std::optional<Violation> violation_of(const Domain& domain, std::string_view key, double value);
std::optional<Violation> violation_of(const Domain& domain, std::string_view key, const std::string& value);
std::optional<Violation> violation_of(const Domain& domain, std::string_view key, const Duration& value);
template <typename T>
std::optional<Violation> violation_of(const Domain& domain, std::string_view key, const std::vector<T>& values);

/// A bound as messages have it: "1,000,000" or "0.5".
std::string number_text(double value);

/// The domain in words, for documentation: "at least 1", "`a`, `b` or `c`"; empty if any value will do.
std::string in_words(const Domain& domain);

}  // namespace plumb
