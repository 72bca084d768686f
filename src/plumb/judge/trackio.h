// Runs from a database of trackio, which keeps those of a project in SQLite.
#pragma once

#include <filesystem>
#include <vector>

#include "plumb/judge/run_record.h"

namespace plumb {

/// Reads the tables `metrics` (run_name, step, metrics as JSON) and `configs`, if there is one. Keys of a configuration
/// that trackio adds begin with "_" and are left out. The database is not changed. Throws Error if it has no such
/// table, is damaged or being written, computes values, has one of more than 64 MiB, or takes longer than a slow disk.
std::vector<RunRecord> read_trackio(const std::filesystem::path& file);

}  // namespace plumb
