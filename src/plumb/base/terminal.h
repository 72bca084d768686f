// What concerns terminals: their size, and text that is safe to show on them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plumb {

/// The width, in columns, of the terminal that a file descriptor such as STDERR_FILENO refers to; 80 if the terminal
/// does not report it, 0 if the descriptor is not a terminal.
size_t terminal_width(int descriptor);

/// Text of unknown origin, such as the name of a directory, for one line of a terminal: control characters, which could
/// begin a new line or an escape sequence, and bytes that are not UTF-8 are shown as \n, \x1b and so on.
std::string printable(std::string_view text);

}  // namespace plumb
