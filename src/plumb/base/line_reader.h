// Reads a text file line by line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace plumb {

/// Reads the same lines as `read_lines` without holding the whole file in memory.
class LineReader {
 public:
  /// Throws Error if the file cannot be read.
  explicit LineReader(const std::filesystem::path& path);

  /// The next line without its end, valid until the next call; nullopt after the last. Throws Error if reading fails,
  /// or, naming the line, if it is not valid UTF-8.
  std::optional<std::string_view> next();

  /// The number of lines read so far: the 1-based number of the latest one.
  [[nodiscard]] int64_t count() const { return count_; }

 private:
  std::string name_;
  std::ifstream in_;
  std::string line_;
  int64_t count_ = 0;
};

}  // namespace plumb
