// Bytes as text: base64, RFC 4648, section 4.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plumb {

/// Four characters for three bytes, padded with '='.
std::string base64_of(std::string_view bytes);

/// The bytes of such a text, up to its padding; nothing if it has another character.
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace plumb
