// Files that come with Plumb: installed with the program, or in its source tree.
#pragma once

#include <filesystem>
#include <map>
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

/// The files of the studies that come with Plumb, by name.
inline std::map<std::string, std::filesystem::path> studies_of_plumb() {
  std::map<std::string, std::filesystem::path> studies;
  std::error_code ignored;
  for (const std::filesystem::path& folder : places_of_shared("studies", "studies")) {
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      if (entry.path().extension() == ".toml") studies.emplace(entry.path().stem().string(), entry.path());
    }
  }
  return studies;
}

}  // namespace plumb::app
