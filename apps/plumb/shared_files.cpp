#include "shared_files.h"

#include <system_error>

namespace plumb::app {

std::vector<std::filesystem::path> places_of_shared(const std::string& installed, const std::string& source) {
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return {program.parent_path().parent_path() / "share" / "plumb" / installed,
          std::filesystem::path(PLUMB_SOURCE_DIR) / source};
}

std::map<std::string, std::filesystem::path> studies_of_plumb() {
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
