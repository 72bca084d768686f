// Checks of numeric options, whose messages say what a number must be. All refuse infinity and NaN, which CLI::Range
// admits.
#pragma once

#include <CLI/CLI.hpp>

namespace plumb::app {

CLI::Validator positive();
CLI::Validator not_negative();
/// From `smallest` to `largest`.
CLI::Validator between(double smallest, double largest);
/// From 0 to 2^63 − 1, where larger numbers would be taken for others.
CLI::Validator fits_int64();

}  // namespace plumb::app
