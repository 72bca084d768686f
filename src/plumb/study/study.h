// A complete study: data, measurements, training runs, results.json.
#pragma once

#include <filesystem>
#include <functional>

#include "plumb/study/part.h"

namespace plumb {

/// Runs a study in the directory `out`, or resumes it, and writes out/results.json (docs/formats/results.md) and
/// out/study.toml (the study with all defaults spelled out). Up to `jobs` measurements run concurrently; 0: one per
/// thread for small models, otherwise one. `on_point` is never called by two threads at once, nor is `on_part`, which
/// gets the results so far whenever a part but the last is measured. Throws Error if `out` contains anything but a
/// study, and on mistakes in the study before anything is measured.
Json run_study(const StudyConfig& config, const std::filesystem::path& out, const RunObserver& on_point = {},
               int64_t jobs = 0, const std::function<void(const Json& results)>& on_part = {});

/// The results of those parts of a study, complete or not, of which everything is measured; measures nothing. Throws
/// Error if `out` is no study.
Json report_study(const std::filesystem::path& out);

struct RegisteredClaims {
  Json document;                                    // study/registration.h
  std::vector<std::vector<std::string>> judged_in;  // by claim, the arms or the pairs of arms
};

/// Prepares the study's data, checks that its claims can be judged, and registers them. Throws Error as run_study does,
/// and if they are registered or measured already.
RegisteredClaims register_claims(const StudyConfig& config, const std::filesystem::path& out);

}  // namespace plumb
