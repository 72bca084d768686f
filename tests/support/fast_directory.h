// A temporary directory, in memory if the system has room there, where syncing costs nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <system_error>

#include "support/paths.h"

namespace plumb::test {

class FastDirectory : public TemporaryDirectory {
 public:
  FastDirectory() : TemporaryDirectory(parent()) {}

 private:
  static std::filesystem::path parent() {
    constexpr uintmax_t kRoom = uintmax_t{8} << 30;  // containers may have a few megabytes
    std::error_code none;
    const std::filesystem::path memory = "/dev/shm";
    const bool has_room = std::filesystem::space(memory, none).available >= kRoom && !none;
    return has_room ? memory : std::filesystem::temp_directory_path();
  }
};

}  // namespace plumb::test
