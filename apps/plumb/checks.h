// Checks of numeric options, with messages that say what is allowed. All reject infinity and NaN, which CLI::Range
// accepts.
#pragma once

#include <CLI/CLI.hpp>

namespace plumb::app {

CLI::Validator positive();
CLI::Validator not_negative();
/// From `smallest` to `largest`, inclusive.
CLI::Validator between(double smallest, double largest);
/// From 0 to 2^63 − 1; larger numbers would overflow.
CLI::Validator fits_int64();

}  // namespace plumb::app
