// A study from beginning to end: data, measurements, training runs, results.json.
#pragma once

#include <filesystem>

#include "plumb/study/part.h"

namespace plumb {

/// Runs a study in the directory `out`, or goes on with what an earlier call left there, and writes out/results.json
/// (docs/formats/results.md) and out/study.toml (the study with every default written out). Throws Error if `out` holds
/// something else.
Json run_study(const StudyConfig& config, const std::filesystem::path& out, const RunObserver& on_point = {});

}  // namespace plumb
