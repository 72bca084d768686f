// The program, libraries and machine that train a run, recorded in its directory.
#pragma once

#include <cstdint>
#include <filesystem>

#include "plumb/base/json.h"

namespace plumb {

/// Program version and Git commit, compiler, LibTorch version, host, system, processor and its cores, memory, and this
/// process's device and threads. Unknown values are left out.
Json describe_environment();

/// Appends a line to RUN/environment.jsonl: describe_environment(), the time, step, command and number of processes
/// with which the run was started or resumed. Throws Error if it cannot be written.
void record_environment(const std::filesystem::path& run, int64_t step, int64_t processes);

}  // namespace plumb
