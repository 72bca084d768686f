// The lines of a text file, one after another.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace plumb {

/// Reads the lines that `read_lines` returns without holding the file.
class LineReader {
 public:
  /// Throws Error if the file cannot be read.
  explicit LineReader(const std::filesystem::path& path);

  /// The next line without its end, valid until the next call; nothing after the last one. Throws Error if reading
  /// fails, or naming a line that is not valid UTF-8.
  std::optional<std::string_view> next();

  /// The number of lines read so far, that is, the number of the last one.
  [[nodiscard]] int64_t count() const { return count_; }

 private:
  std::string name_;
  std::ifstream in_;
  std::string line_;
  int64_t count_ = 0;
};

}  // namespace plumb
