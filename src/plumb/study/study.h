// A complete study: data, measurements, training runs, results.json.
#pragma once

#include <filesystem>

#include "plumb/study/part.h"

namespace plumb {

/// Runs a study in the directory `out`, or resumes it, and writes out/results.json (docs/formats/results.md) and
/// out/study.toml (the study with all defaults spelled out). Up to `jobs` measurements run concurrently; 0: one per
/// thread for small models, otherwise one. `on_point` is never called by two threads at once. Throws Error if `out`
/// contains anything but a study, and on mistakes in the study before anything is measured.
Json run_study(const StudyConfig& config, const std::filesystem::path& out, const RunObserver& on_point = {},
               int64_t jobs = 0);

}  // namespace plumb
