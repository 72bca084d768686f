// Locations of test input and output.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace plumb::test {

/// The root of the repository.
const std::filesystem::path& source_directory();

/// The path of this build's `plumb` program.
const std::string& plumb_program();

/// The path of the program that loaded_program.h starts; empty in builds that do without it.
const std::string& loaded_program();

/// Material outside the repository: $PLUMB_SHARED, or `shared` next to the repository.
inline std::filesystem::path shared_directory() {
  const char* named = std::getenv("PLUMB_SHARED");
  return named != nullptr && *named != '\0' ? std::filesystem::path(named)
                                            : source_directory().parent_path() / "shared";
}

/// An empty directory that is removed with its contents at the end of the scope.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string name = (parent / "plumb-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), name);
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace plumb::test

/// Skips the test if `path`, relative to the shared directory, is absent. If PLUMB_SHARED is set, the material is
/// expected to be there, and the test fails instead.
#define PLUMB_REQUIRE_SHARED(path)                                                   \
  if (!std::filesystem::exists(plumb::test::shared_directory() / (path))) {          \
    if (std::getenv("PLUMB_SHARED") != nullptr) {                                    \
      FAIL() << (plumb::test::shared_directory() / (path)).string() << " is absent"; \
    }                                                                                \
    GTEST_SKIP() << (path) << " is absent; name its directory with PLUMB_SHARED";    \
  }                                                                                  \
  static_assert(true)
