// What every command does with standard output and standard error.
#pragma once

#include <string_view>

namespace plumb::app {

/// Writes an error and, unless it is empty, the hint to standard error.
void print_error(std::string_view what, std::string_view hint);

/// Throws Error if any output was lost.
void check_standard_output();

}  // namespace plumb::app
