// SHA-256, to identify public files.
#pragma once

#include <string>
#include <string_view>

namespace plumb {

/// SHA-256 (FIPS 180-4) as 64 hexadecimal digits.
std::string sha256(std::string_view content);

}  // namespace plumb
