// Reads a text file line by line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "plumb/base/input.h"

namespace plumb {

/// Reads the same lines as `read_lines` without holding the whole file in memory.
class LineReader {
 public:
  /// No line is longer, in bytes, so that no file fills the memory.
  static constexpr size_t kLongestLine = size_t{64} << 20;

  /// Throws Error if the file cannot be read within the limits (base/input.h).
  explicit LineReader(const std::filesystem::path& path, const InputLimits& limits = kNamedInput)
      : name_(path.string()), file_(open_input(path, limits)), most_(limits.bytes) {}

  /// The next line without its end, valid until the next call; nullopt after the last. Throws Error if reading fails
  /// or passes the limits, or, naming the line, if it is too long or not valid UTF-8.
  std::optional<std::string_view> next();

  /// The number of lines read so far: the 1-based number of the latest one.
  [[nodiscard]] int64_t count() const { return count_; }

  /// Whether the latest line ended with CR LF.
  [[nodiscard]] bool ended_with_cr() const { return ended_with_cr_; }

 private:
  bool read_more();

  std::string name_;
  Descriptor file_;
  uint64_t most_, read_ = 0;  // bytes
  std::string buffer_;        // from the latest line on
  size_t begin_ = 0;          // of the next line in it
  int64_t count_ = 0;
  bool ended_with_cr_ = false;
};

}  // namespace plumb
