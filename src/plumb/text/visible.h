// Whether text says anything.
#pragma once

#include <string_view>

namespace plumb {

/// False for text of white space, control characters and characters that normalization removes: nothing is left of it
/// as tokens. `text` is UTF-8; a malformed byte is not visible.
bool has_visible_character(std::string_view text);

}  // namespace plumb
