// The header of a file of token sequences (docs/formats/data.md).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace plumb::split_format {

static_assert(std::endian::native == std::endian::little, "splits are little-endian and mapped as they are");

/// Followed by source offsets (pairs + 1), target offsets (pairs + 1), source ids and target ids.
struct Header {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t checksum;  // CRC-32 of everything after this field
  uint64_t pairs;
  uint64_t source_tokens;
  uint64_t target_tokens;
};
static_assert(sizeof(Header) == 40);

inline constexpr std::array<char, 8> kMagic = {'P', 'L', 'U', 'M', 'B', 'T', 'O', 'K'};
inline constexpr uint32_t kVersion = 1;
/// The checksum covers the bytes from here on.
inline constexpr size_t kChecked = offsetof(Header, pairs);

}  // namespace plumb::split_format
