// What concerns terminals: their size, and text that is safe to show on them.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace plumb {

/// The width, in columns, of the terminal that a file descriptor such as STDERR_FILENO refers to; 80 if the terminal
/// does not report it, 0 if the descriptor is not a terminal.
size_t terminal_width(int descriptor);

/// Text of unknown origin, such as the name of a directory, for one line of a terminal: control characters, which could
/// begin a new line or an escape sequence, and bytes that are not UTF-8 are shown as \n, \x1b and so on. Those in
/// `kept`, such as line ends, stay as they are.
std::string printable(std::string_view text, std::string_view kept = {});

/// Removes the next character from a text, which is not empty, and returns what to show for it, perhaps in `room`. May
/// be called in a signal handler.
std::string_view next_printable(std::string_view& text, std::array<char, 16>& room);

}  // namespace plumb
