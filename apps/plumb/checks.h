// Checks of numeric options, whose messages say what a number must be.
#pragma once

#include <CLI/CLI.hpp>

namespace plumb::app {

/// Both also refuse infinity and NaN.
CLI::Validator positive();
CLI::Validator not_negative();
/// From `smallest` to `largest`; not NaN, which CLI::Range admits.
CLI::Validator between(double smallest, double largest);
/// From 0 to 2^63 − 1, where larger numbers would be taken for others.
CLI::Validator fits_int64();

}  // namespace plumb::app
