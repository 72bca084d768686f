#include "checks.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <string>

#include "plumb/base/domain.h"

namespace plumb::app {
namespace {

/// Rejects infinity and NaN, too. Text that is not a number is left to the option's type check. program.cpp joins what
/// it says to the option's name.
CLI::Validator checked(const std::string& what, const std::function<bool(double)>& fits) {
  const auto check = [what, fits](const std::string& text) {
    double number = 0;
    if (!CLI::detail::lexical_cast(text, number) || (std::isfinite(number) && fits(number))) return std::string();
    return fmt::format("must be {}, not {}", std::isfinite(number) ? what : "a finite number", text);
  };
  return {check, ""};
}

}  // namespace

CLI::Validator positive() {
  return checked("greater than 0", [](double number) { return number > 0; });
}

CLI::Validator not_negative() {
  return checked("0 or greater", [](double number) { return number >= 0; });
}

CLI::Validator between(double smallest, double largest) {
  return checked(fmt::format("from {} to {}", number_text(smallest), number_text(largest)),
                 [=](double number) { return number >= smallest && number <= largest; });
}

CLI::Validator fits_int64() {
  return checked("from 0 to 2^63 - 1", [](double number) { return number >= 0 && number < 0x1p63; });
}

}  // namespace plumb::app
