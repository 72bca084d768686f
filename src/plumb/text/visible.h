// Whether text contains anything visible, and how SentencePiece makes spaces visible.
#pragma once

#include <string_view>

namespace plumb {

/// A space within SentencePiece's pieces: ▁.
inline constexpr const char* kVisibleSpace = "\u2581";

/// False if the text consists of white space, control characters and characters that normalization removes, and thus
/// yields no tokens. `text` is UTF-8; malformed bytes are not visible.
bool has_visible_character(std::string_view text);

}  // namespace plumb
