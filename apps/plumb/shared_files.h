// Files that come with Plumb: installed with the program, or in its source tree.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace plumb::app {

/// The places of a file or folder, in the order of preference: `installed` in share/plumb, and `source` in the tree.
inline std::vector<std::filesystem::path> places_of_shared(const std::string& installed, const std::string& source) {
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return {program.parent_path().parent_path() / "share" / "plumb" / installed,
          std::filesystem::path(PLUMB_SOURCE_DIR) / source};
}

}  // namespace plumb::app
