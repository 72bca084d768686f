// A study from beginning to end: data, measurements, training runs, results.json.
#pragma once

#include <filesystem>

#include "plumb/study/part.h"

namespace plumb {

/// Runs a study in the directory `out`, or resumes it, and writes out/results.json (docs/formats/results.md) and
/// out/study.toml (the study with all defaults spelled out). Throws Error if `out` contains anything else.
Json run_study(const StudyConfig& config, const std::filesystem::path& out, const RunObserver& on_point = {});

}  // namespace plumb
