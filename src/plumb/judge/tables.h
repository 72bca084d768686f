// The files in which programs keep tables: their lines, by column.
#pragma once

#include <filesystem>
#include <vector>

#include "plumb/judge/log_lines.h"
#include "plumb/judge/rows.h"

namespace plumb {

/// Whether each line of a file is an object, whatever it is called: detectron2's metrics.json, DeiT's log.txt.
bool holds_objects(const std::filesystem::path& file);

/// The lines of a file that is a table by its name (.csv, .tsv, .jsonl, .ndjson, .json) or its first lines: objects, also
/// after a text as fairseq's, or, of a .log file, fields with commas, as Keras's. Of other files, the lines that one of
/// the patterns matches. Empty if the file is of no kind that this reads. Throws Error if it is not what it seems.
Rows rows_in_file(const std::filesystem::path& file, const std::vector<LinePattern>& patterns);

}  // namespace plumb
