#include "plumb/base/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "plumb/base/error.h"
#include "plumb/base/parse_number.h"
#include "plumb/base/text.h"

namespace plumb {
namespace {

struct Unit {
  std::string_view name;
  double value;
};

constexpr double kKibi = 1024;
constexpr std::array kUnits = {Unit{"", 1},
                               Unit{"k", 1e3},
                               Unit{"K", 1e3},
                               Unit{"M", 1e6},
                               Unit{"G", 1e9},
                               Unit{"B", 1e9},
                               Unit{"T", 1e12},
                               Unit{"P", 1e15},
                               Unit{"kB", 1e3},
                               Unit{"KB", 1e3},
                               Unit{"MB", 1e6},
                               Unit{"GB", 1e9},
                               Unit{"TB", 1e12},
                               Unit{"PB", 1e15},
                               Unit{"KiB", kKibi},
                               Unit{"MiB", kKibi* kKibi},
                               Unit{"GiB", kKibi* kKibi* kKibi},
                               Unit{"TiB", kKibi* kKibi* kKibi* kKibi},
                               Unit{"PiB", kKibi* kKibi* kKibi* kKibi* kKibi}};

/// Formats up to three digits of the value in the largest unit that it reaches; `units` are in increasing order.
std::string in_units(double value, std::span<const Unit> units) {
  const Unit* unit = &units.front();
  for (const Unit& each : units) {
    if (value >= each.value) unit = &each;
  }
  const double count = value / unit->value;
  const int digits = count >= 100 || count == std::floor(count) ? 0 : count >= 10 ? 1 : 2;
  return fmt::format("{:.{}f}{}{}", count, digits, unit->name.empty() ? "" : " ", unit->name);
}

}  // namespace

double parse_quantity(std::string_view text, const std::string& what) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  if (error == std::errc() && std::isfinite(number) && number >= 0) {
    for (const Unit& unit : kUnits) {
      if (unit.name == rest) return number * unit.value;
    }
  }
  throw Error(fmt::format("{}: '{}' is not a quantity", what, text), "examples: 2048, 300B, 312T, 25GB, 80GiB");
}

std::string with_unit(double value) {
  constexpr std::array kShown = {Unit{"", 1}, Unit{"k", 1e3}, Unit{"M", 1e6}, Unit{"B", 1e9}, Unit{"T", 1e12}};
  if (value >= 1e15) return fmt::format("{:.3g}", value);
  return in_units(value, kShown);
}

std::string rounded(double value, int digits) {
  const std::string text = fmt::format("{:.{}g}", value, digits);
  const double written = parse_number<double>(text).value_or(0);
  const bool large = std::abs(written) >= std::pow(10.0, std::min(digits, 3)) && std::abs(written) < 1e15;
  return large ? with_thousands(static_cast<int64_t>(written)) : text;
}

std::string with_bytes(double bytes) {
  constexpr std::array kShown = {Unit{"B", 1}, Unit{"KiB", kKibi}, Unit{"MiB", kKibi * kKibi},
                                 Unit{"GiB", kKibi * kKibi * kKibi}, Unit{"TiB", kKibi * kKibi * kKibi * kKibi}};
  return in_units(bytes, kShown);
}

}  // namespace plumb
