// Where a run is trained: program, libraries and machine, noted in its directory.
#pragma once

#include <cstdint>
#include <filesystem>

#include "plumb/base/json.h"

namespace plumb {

/// Version and Git commit of the program, compiler, LibTorch, host, system, processor with its cores, memory, device
/// and threads of this process. What the system does not tell is left out.
Json describe_environment();

/// Appends a line to RUN/environment.jsonl: describe_environment(), when the run was started or resumed, at which step,
/// by which command, and in how many processes. Throws Error if it cannot be written.
void record_environment(const std::filesystem::path& run, int64_t step, int64_t processes);

}  // namespace plumb
