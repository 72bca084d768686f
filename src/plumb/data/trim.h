// Lines of text without the white space around them.
#pragma once

#include <string>
#include <string_view>

#include "plumb/text/visible.h"

namespace plumb {

/// ASCII white space, which is cut around a sentence.
inline constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";

/// Whether nothing is left of a line as tokens.
inline bool is_blank(std::string_view text) { return !has_visible_character(text); }

/// Empty if the text is blank.
inline std::string trim(std::string_view text) {
  if (is_blank(text)) return {};
  const size_t begin = text.find_first_not_of(kWhiteSpace);
  return std::string(text.substr(begin, text.find_last_not_of(kWhiteSpace) - begin + 1));
}

}  // namespace plumb
