#include "plumb/text/visible.h"

#include <unicode/uchar.h>

#include "plumb/base/utf8.h"

namespace plumb {

bool has_visible_character(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<UChar32>(next_character(text, i));
    const bool zero_width = (c >= 0x200B && c <= 0x200F) || c == 0xFEFF;
    const bool marks_space = c == 0x2581;  // SentencePiece's own symbol for a space
    if (zero_width || marks_space || c == 0xFFFD || u_isUWhiteSpace(c)) continue;
    if (u_charType(c) != U_CONTROL_CHAR) return true;
  }
  return false;
}

}  // namespace plumb
