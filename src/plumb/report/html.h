// The results of a study as one HTML page that needs no network.
#pragma once

#include <filesystem>
#include <string>

#include "plumb/base/json.h"

namespace plumb {

/// The page for a document of the schema plumb.study/1 (docs/formats/results.md), with the data inside.
/// Throws Error if `results` is of another schema.
std::string render_report(const Json& results);

/// Reads DIRECTORY/results.json and writes DIRECTORY/report.html, which appears complete or not at all.
/// Throws Error if the results are missing, are not valid JSON or are of another schema.
void write_report(const std::filesystem::path& directory);

}  // namespace plumb
