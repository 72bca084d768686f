// SHA-256, to identify public files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace plumb {

/// SHA-256 (FIPS 180-4) as 64 hexadecimal digits.
std::string sha256(std::string_view content);

/// Identifies a file's content.
struct FileDigest {
  std::uintmax_t bytes = 0;
  std::string sha256;
};

/// The size and SHA-256 of a file, read in blocks. Throws Error if it cannot be read.
FileDigest digest_of(const std::filesystem::path& file);

}  // namespace plumb
