#include "plumb/data/checksum.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <zlib.h>

#include <array>

#include "plumb/base/error.h"

namespace plumb {

std::string sha256(std::string_view content) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_Digest(content.data(), content.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw Error("SHA-256 cannot be computed", "libcrypto does not provide it on this machine");
  }
  std::string hexadecimal;
  for (unsigned int i = 0; i < size; ++i) hexadecimal += fmt::format("{:02x}", digest[i]);
  return hexadecimal;
}

uint32_t crc32_of(std::span<const std::byte> content, uint32_t start) {
  if (content.empty()) return start;  // zlib takes a null pointer as the wish for its initial value
  return static_cast<uint32_t>(
      ::crc32_z(start, reinterpret_cast<const unsigned char*>(content.data()), content.size()));
}

}  // namespace plumb
