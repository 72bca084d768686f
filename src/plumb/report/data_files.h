// The tables and figures of a report as files for other programs: CSV and SVG.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plumb/base/json.h"

namespace plumb {

/// A table as CSV (the quoting of RFC 4180): a missing cell is empty. Text that a spreadsheet would take for a formula,
/// such as "=1+1", begins with a '.
std::string csv_text(const std::vector<std::string>& columns, const Json& rows);

/// Of which figure files are written, and with which of its series: names separated by commas, such as
/// "Post-LN,Pre-LN". Empty: all.
struct FigureChoice {
  std::string id, series;
};

/// Writes the tables and the figures' data of a document of the schema plumb.study/1 to DIRECTORY, as table-ID.csv and
/// figure-ID.csv, and returns the number of files; no tables if a figure is chosen. The columns of a figure are
/// `series`, the labels of its axes, `low` and `high`. Throws Error if the document is damaged, or does not have what
/// is chosen.
size_t write_csv(const Json& results, const std::filesystem::path& directory, const FigureChoice& choice = {});

/// Writes the figures to DIRECTORY as figure-ID.svg (report/svg.h), in the colors of the whole report. Returns the
/// number of files; throws as write_csv does.
size_t write_svg(const Json& results, const std::filesystem::path& directory, const FigureChoice& choice = {});

}  // namespace plumb
