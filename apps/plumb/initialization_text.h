// The measurements at initialization, formatted as `plumb probe` prints them.
#pragma once

#include <string>

#include "plumb/analysis/initialization.h"

namespace plumb::app {

/// "1.234 ± 0.056" with the half-width of the interval, or just the mean of a single value.
std::string interval_text(const Interval& interval, double unit = 1);

/// One table per measurement in the report, each preceded by an empty line.
std::string text_of(const InitializationReport& report);

}  // namespace plumb::app
