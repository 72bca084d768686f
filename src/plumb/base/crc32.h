// CRC-32, to detect damage in Plumb's own files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace plumb {

/// CRC-32 (IEEE 802.3); pass the value for a first part as `start` to continue with the next.
uint32_t crc32_of(std::span<const std::byte> content, uint32_t start = 0);
uint32_t crc32_of(std::string_view content, uint32_t start = 0);

/// The value as it is written in files: eight hexadecimal digits.
std::string crc32_text(uint32_t value);

}  // namespace plumb
