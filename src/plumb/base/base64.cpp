#include "plumb/base/base64.h"

#include <openssl/evp.h>

namespace plumb {
namespace {

unsigned char* octets(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
const unsigned char* octets(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

}  // namespace

std::string base64_of(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4, '\0');  // and one more, which OpenSSL writes too
  ::EVP_EncodeBlock(octets(text), octets(bytes), static_cast<int>(bytes.size()));
  return text;
}

std::optional<std::string> bytes_of_base64(std::string_view text) {
  std::string digits(text.substr(0, text.find('=')));
  const size_t count = digits.size() * 3 / 4;
  digits.append((4 - digits.size() % 4) % 4, '=');
  std::string bytes(digits.size() / 4 * 3, '\0');
  const int decoded = ::EVP_DecodeBlock(octets(bytes), octets(digits), static_cast<int>(digits.size()));
  if (decoded != static_cast<int>(bytes.size())) return {};
  bytes.resize(count);
  return bytes;
}

}  // namespace plumb
