// Removes white space around lines of text.
#pragma once

#include <string>
#include <string_view>

#include "plumb/text/visible.h"

namespace plumb {

/// ASCII white space.
inline constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";

/// Whether a line has no visible characters, and thus yields no tokens.
inline bool is_blank(std::string_view text) { return !has_visible_character(text); }

/// `text` without surrounding ASCII white space; empty if it is blank.
inline std::string trim(std::string_view text) {
  if (is_blank(text)) return {};
  const size_t begin = text.find_first_not_of(kWhiteSpace);
  return std::string(text.substr(begin, text.find_last_not_of(kWhiteSpace) - begin + 1));
}

}  // namespace plumb
