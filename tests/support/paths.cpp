// Compiled once for all test programs. This file alone is compiled with paths of this machine, so a compiler's cache
// serves every clone.
#include "support/paths.h"

namespace plumb::test {

const std::filesystem::path& source_directory() {
  static const std::filesystem::path path = PLUMB_SOURCE_DIR;
  return path;
}

const std::string& plumb_program() {
  static const std::string path = PLUMB_BINARY;
  return path;
}

const std::string& loaded_program() {
  static const std::string path = PLUMB_LOADED_PROGRAM;
  return path;
}

}  // namespace plumb::test
