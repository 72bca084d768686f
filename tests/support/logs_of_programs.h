// Logs that programs wrote (scripts/golden/run_logs.py).
#pragma once

#include <filesystem>
#include <string>

#include "support/paths.h"

namespace plumb::test {

inline std::filesystem::path golden_run(const std::string& name) {
  return source_directory() / "tests" / "golden" / "runs" / name;
}

}  // namespace plumb::test
