#include "plumb/data/checksum.h"

#include <fmt/format.h>
#include <openssl/evp.h>

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

}  // namespace plumb
