// What every command does with standard output and standard error.
#pragma once

#include <string_view>

namespace plumb::app {

/// What plumb_main returns in the module that only reads where the whole program is needed; no exit status.
inline constexpr int kNeedsWholeProgram = -1;

/// Writes an error and, unless it is empty, the hint to standard error.
void print_error(std::string_view what, std::string_view hint);

/// Writes to standard output, at once. On a terminal, control characters other than line ends and tabs are printable():
/// text that a model, a file or another person has written cannot change its settings or what it shows. Files and pipes
/// get the text as it is. Throws Error if it cannot be written.
void print(std::string_view text);

/// Throws Error if any output was lost.
void check_standard_output();

}  // namespace plumb::app
