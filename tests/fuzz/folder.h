// A temporary folder whose files are rewritten for every input, and inputs that hold several files.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

namespace plumb::fuzz {

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / fmt::format("plumb-fuzz-{}-{}", ::getpid(), number())) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  void write(const std::filesystem::path& name, std::string_view content) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream out(path_ / name, std::ios::binary);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
  }

 private:
  static int number() {
    static int next = 0;
    return next++;
  }

  std::filesystem::path path_;
};

/// The input, split at lines "%%" into `count` parts. The last part takes the rest; missing parts are empty.
inline std::vector<std::string_view> parts_of(std::string_view input, size_t count) {
  constexpr std::string_view kCut = "\n%%\n";
  std::vector<std::string_view> parts;
  while (parts.size() + 1 < count) {
    const size_t end = std::min(input.find(kCut), input.size());
    parts.push_back(input.substr(0, end));
    input.remove_prefix(std::min(end + kCut.size(), input.size()));
  }
  parts.push_back(input);
  return parts;
}

}  // namespace plumb::fuzz
