// Whatever comes from outside is read through this file: only files, only up to a size, never waiting for anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

/// Reads a text file or standard input line by line, without line ends (LF or CRLF) and a byte-order mark.
class LineReader {
 public:
  /// No line is longer, in bytes, so that no file fills the memory.
  static constexpr size_t kLongestLine = size_t{64} << 20;

  /// Begins at the byte `begin`, behind as many lines. Throws Error if the file cannot be read within the limits.
  explicit LineReader(const std::filesystem::path& path, const InputLimits& limits = kNamedInput, uint64_t begin = 0,
                      int64_t lines = 0)
      : LineReader(path.string(), open_input(path, limits), limits.bytes) {
    if (begin > 0 && ::lseek(file_.get(), static_cast<off_t>(begin), SEEK_SET) >= 0) read_ = begin, count_ = lines;
  }

  static LineReader standard_input();

  /// The next line without its end, valid until the next call; nullopt after the last. Throws Error if reading fails
  /// or passes the limits, or, naming the line, if it is too long or not valid UTF-8.
  std::optional<std::string_view> next();

  /// The number of lines read so far: the 1-based number of the latest one.
  [[nodiscard]] int64_t count() const { return count_; }

  /// The byte of the file behind the latest line and its end, and whether it had one, as the last of a file may not.
  [[nodiscard]] uint64_t offset() const { return read_ - (buffer_.size() - begin_); }
  [[nodiscard]] bool has_ended() const { return begin_ > 0 && buffer_[begin_ - 1] == '\n'; }

  /// Whether the latest line ended with CR LF.
  [[nodiscard]] bool ended_with_cr() const { return ended_with_cr_; }

 private:
  LineReader(std::string name, Descriptor file, uint64_t most)
      : name_(std::move(name)), file_(std::move(file)), most_(most) {}
  bool read_more();

  std::string name_;
  Descriptor file_;
  uint64_t most_, read_ = 0;  // bytes
  std::string buffer_;        // from the latest line on
  size_t begin_ = 0;          // of the next line in it
  int64_t count_ = 0;
  bool ended_with_cr_ = false;
  bool at_end_ = false;  // of the file
};

/// All lines of a text file, as LineReader reads them.
std::vector<std::string> read_lines(const std::filesystem::path& path, const InputLimits& limits = kNamedInput);

/// The same for standard input, to its end.
std::vector<std::string> read_standard_input();

/// Throws Error if a path is not valid UTF-8, and so cannot be recorded in Plumb's files.
void require_utf8(const std::filesystem::path& path);

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
