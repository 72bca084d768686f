// A temporary directory, in memory if the system supports that, where syncing costs nothing.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace plumb::test {

class FastDirectory {
 public:
  FastDirectory() {
    const std::filesystem::path memory = "/dev/shm";
    const auto parent = std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
    std::string name = (parent / "plumb-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), name);
    path_ = name;
  }
  ~FastDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  FastDirectory(const FastDirectory&) = delete;
  FastDirectory& operator=(const FastDirectory&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace plumb::test
