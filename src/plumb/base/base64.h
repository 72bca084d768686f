// Bytes as text: base64, RFC 4648, section 4.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plumb {

/// Encodes every three bytes as four characters, padded with '='.
std::string base64_of(std::string_view bytes);

/// Decodes base64 up to its padding; nullopt on any other character.
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace plumb
