// CRC-32C (Castagnoli), the checksum of TensorBoard's record files.
#pragma once

#include <cstdint>
#include <string_view>

namespace plumb {

/// Polynomial 0x1EDC6F41, reflected, initial value and final exclusive-or 0xFFFFFFFF (RFC 3720, B.4).
uint32_t crc32c(std::string_view bytes);

/// The form stored in records: rotated right by 15 bits plus 0xA282EAD8, so that the checksum of data that contains its
/// own checksum remains meaningful.
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace plumb
