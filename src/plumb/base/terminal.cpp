#include "plumb/base/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "plumb/base/files.h"

namespace plumb {

size_t terminal_width(int descriptor) {
  if (::isatty(descriptor) == 0) return 0;
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 ? 80 : size.ws_col;
}

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    size_t length = 1;  // of the next character; 0 if the bytes are not UTF-8
    while (length <= 4 && !is_valid_utf8(text.substr(0, length))) ++length;
    const bool valid = length <= std::min<size_t>(4, text.size());
    const auto first = static_cast<unsigned char>(text[0]);
    const bool control =
        first < 0x20 || first == 0x7F || (valid && first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0);
    if (!valid) length = 1;
    if (valid && !control) {
      shown += text.substr(0, length);
    } else if (first == '\n') {
      shown += "\\n";
    } else {
      for (const char c : text.substr(0, length)) shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(length);
  }
  return shown;
}

}  // namespace plumb
