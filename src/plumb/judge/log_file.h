// The files in which programs keep logs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumb/base/csv.h"
#include "plumb/base/input.h"
#include "plumb/judge/event_files.h"
#include "plumb/judge/log_table.h"
#include "plumb/judge/run_record.h"

namespace plumb {

/// Whether each line of a file is an object, whatever it is called: detectron2's metrics.json, DeiT's log.txt.
bool holds_objects(const std::filesystem::path& file);

/// A log and the runs in it. It is a table by its name (.csv, .tsv, .jsonl, .ndjson, .json) or its first lines:
/// objects, also after a text as fairseq's, or, of a .log file, fields with commas, as Keras's. Of other files, the
/// lines count that one of the patterns matches.
class LogFile {
 public:
  /// `name`: of its runs.
  LogFile(std::filesystem::path file, std::string name, LogKeys keys)
      : file_(std::move(file)), keys_(std::move(keys)), table_(std::move(name), keys_.settings) {}

  /// The runs; none if the file is of no kind that this reads. Lines that have been read are not read again unless
  /// others stand in their place, as far as the last 4 KiB of them show. Throws Error if the file is not what it seems.
  const std::vector<RunRecord>& records() &;
  std::vector<RunRecord> records() && { return records(), std::move(records_); }

 private:
  enum class Kind { none, fields, objects, objects_after_text, list, text };

  [[nodiscard]] Kind kind() const;
  [[nodiscard]] std::string last_bytes() const;
  void read_lines();
  void read_list();
  bool take_line(std::string_view line, const LineReader& lines, RecordParser& parser);
  void take_fields(const std::vector<std::string_view>& fields);
  void take_object(std::string_view line, const LineReader& lines);

  std::filesystem::path file_;
  LogKeys keys_;
  LogTable table_;
  std::vector<RunRecord> records_;
  std::string stamp_;             // of the file when these were read
  std::vector<uint32_t> header_;  // the columns of fields
  std::vector<std::string_view> fields_;
  size_t records_read_ = 0;  // of fields, with the header
  /// How far the file has been read, to the end of a line that cannot go on.
  struct Place {
    uint64_t offset = 0;  // in bytes
    int64_t lines = 0;
    size_t records = 0, rows = 0;  // of fields; of the table
  } place_;
  std::string last_;  // the last bytes before it
  Kind kind_ = Kind::none;
};

/// Logs that are read again while programs write into them.
struct LogFiles {
  std::map<std::pair<std::filesystem::path, std::string>, LogFile> files{};  // by place and name
  EventFiles events{};
};

}  // namespace plumb
