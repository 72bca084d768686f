#include "plumb/base/crc32.h"

#include <fmt/format.h>
#include <zlib.h>

namespace plumb {

uint32_t crc32_of(std::span<const std::byte> content, uint32_t start) {
  if (content.empty()) return start;  // zlib takes a null pointer as a request for its initial value
  return static_cast<uint32_t>(
      ::crc32_z(start, reinterpret_cast<const unsigned char*>(content.data()), content.size()));
}

uint32_t crc32_of(std::string_view content, uint32_t start) {
  return crc32_of(std::as_bytes(std::span(content)), start);
}

std::string crc32_text(uint32_t value) { return fmt::format("{:08x}", value); }

}  // namespace plumb
