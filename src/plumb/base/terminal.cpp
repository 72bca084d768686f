#include "plumb/base/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "plumb/base/utf8.h"

namespace plumb {

size_t terminal_width(int descriptor) {
  if (::isatty(descriptor) == 0) return 0;
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 ? 80 : size.ws_col;
}

std::string_view next_printable(std::string_view& text, std::array<char, 16>& room) {
  size_t length = 0;  // of the next character
  const bool valid = decoded_character(text, length) != kMalformed;
  const std::string_view character = text.substr(0, valid ? length : 1);
  text.remove_prefix(character.size());
  const auto first = static_cast<unsigned char>(character[0]);
  const bool control =
      first < 0x20 || first == 0x7F || (valid && first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0);
  if (valid && !control) return character;
  if (first == '\n') return "\\n";
  char* end = room.data();
  for (const char c : character) end = fmt::format_to(end, "\\x{:02x}", static_cast<unsigned char>(c));
  return {room.data(), end};
}

std::string printable(std::string_view text, std::string_view kept) {
  std::string shown;
  for (std::array<char, 16> room{}; !text.empty();) {
    const bool keeps = kept.find(text[0]) != std::string_view::npos;
    shown += keeps ? text.substr(0, 1) : next_printable(text, room);
    if (keeps) text.remove_prefix(1);
  }
  return shown;
}

}  // namespace plumb
