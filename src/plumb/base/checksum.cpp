#include "plumb/base/checksum.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "plumb/base/error.h"
#include "plumb/base/input.h"

namespace plumb {
namespace {

/// Incremental SHA-256.
class Digest {
 public:
  Digest() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    check(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }
  void add(std::string_view content) { check(EVP_DigestUpdate(context_.get(), content.data(), content.size()) == 1); }
  [[nodiscard]] std::string hexadecimal() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    check(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
    std::string text;
    for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
    return text;
  }

 private:
  static void check(bool success) {
    if (!success) throw Error("SHA-256 cannot be computed", "libcrypto does not provide it on this machine");
  }

  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

std::string sha256(std::string_view content) {
  Digest digest;
  digest.add(content);
  return digest.hexadecimal();
}

FileDigest digest_of(const std::filesystem::path& file) {
  const Descriptor in = open_input(file, {.bytes = std::numeric_limits<uint64_t>::max()});
  Digest digest;
  FileDigest result;
  std::vector<char> block(size_t{1} << 20);
  while (const ssize_t count = in.read(block.data(), block.size())) {
    if (count < 0)
      throw Error(fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)), "check the path");
    digest.add({block.data(), static_cast<size_t>(count)});
    result.bytes += static_cast<size_t>(count);
  }
  result.sha256 = digest.hexadecimal();
  return result;
}

}  // namespace plumb
