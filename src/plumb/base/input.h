// Whatever comes from outside is read through this file: only files, only up to a size, never waiting for anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/base/descriptor.h"

namespace plumb {

/// What a reader accepts.
struct InputLimits {
  uint64_t bytes;      // the largest size
  bool pipes = false;  // also pipes and terminals, which somebody named on the command line
};
inline constexpr InputLimits kSettingsFile{.bytes = uint64_t{64} << 20};  // config.toml, plumb.json, state.json
inline constexpr InputLimits kDocumentFile{.bytes = uint64_t{1} << 30};   // other JSON, tokenizers
inline constexpr InputLimits kLogFile{.bytes = uint64_t{64} << 30};       // histories, logs, text
inline constexpr InputLimits kNamedInput{.bytes = uint64_t{64} << 30, .pipes = true};

/// Opens a file to read it. Throws Error if it cannot be read, or is a directory, a device other than /dev/null, a pipe
/// that the limits exclude, or larger than they allow.
Descriptor open_input(const std::filesystem::path& path, const InputLimits& limits = kDocumentFile);

/// Throws Error as open_input() does, for readers that open the file themselves.
void require_regular_file(const std::filesystem::path& path, const InputLimits& limits = kDocumentFile);

/// The whole content of a file. Throws Error if it cannot be read within the limits.
std::string read_file(const std::filesystem::path& path, const InputLimits& limits = kDocumentFile);

/// The lines of a text file, without line ends (LF or CRLF); a byte-order mark is dropped.
/// Throws Error naming the first line that is not valid UTF-8.
std::vector<std::string> read_lines(const std::filesystem::path& path, const InputLimits& limits = kNamedInput);

/// The same for standard input, to its end.
std::vector<std::string> read_standard_input();

/// Throws Error if a path is not valid UTF-8, and so cannot be recorded in Plumb's files.
void require_utf8(const std::filesystem::path& path);

/// True if `text` is well-formed UTF-8 (no overlong forms, no surrogates).
bool is_valid_utf8(std::string_view text);

/// A file mapped read-only into memory for as long as the object lives.
class MappedFile {
 public:
  /// Throws Error if the file cannot be read, or is no regular file.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace plumb
