// Checksums: SHA-256 to identify public files, CRC-32 to detect damage in our own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace plumb {

/// SHA-256 (FIPS 180-4) as 64 hexadecimal digits.
std::string sha256(std::string_view content);

/// CRC-32 (IEEE 802.3); pass the value for a first part as `start` to continue with the next.
uint32_t crc32_of(std::span<const std::byte> content, uint32_t start = 0);

}  // namespace plumb
