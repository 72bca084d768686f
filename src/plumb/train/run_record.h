// run.json: which program trained a run, and on which machine.
#pragma once

#include <cstdint>
#include <filesystem>

namespace plumb {

/// Appends a session to run.json: its start, the step it goes on from, the program with its commit and versions, the
/// machine, processes and threads. A damaged file is begun anew.
void record_session(const std::filesystem::path& run, int64_t step, int64_t processes, int64_t threads);

}  // namespace plumb
