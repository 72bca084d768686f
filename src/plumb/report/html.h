// The results of a study as one self-contained HTML page.
#pragma once

#include <filesystem>
#include <string>

#include "plumb/base/json.h"

namespace plumb {

/// The page for a document of the schema plumb.study/1 (docs/formats/results.md), with the data embedded. Throws Error
/// if `results` has another schema.
std::string render_report(const Json& results);

/// Prints an HTML page of `render_report` with an installed Chromium, and returns the PDF. Throws Error if Chromium is
/// not installed or fails.
std::string printed_report(const std::string& page);

/// DIRECTORY/results.json. Throws Error if the results are missing, are not valid JSON or have another schema.
Json read_results(const std::filesystem::path& directory);

/// Writes the page of DIRECTORY/results.json to DIRECTORY/report.html, atomically. Throws as read_results does.
void write_report(const std::filesystem::path& directory);

}  // namespace plumb
