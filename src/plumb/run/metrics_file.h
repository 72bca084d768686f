// metrics.jsonl: the history of a run, one point, watch record or trouble record per line, written during the run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plumb/base/descriptor.h"
#include "plumb/run/point.h"
#include "plumb/run/seal.h"

namespace plumb {

/// What the file holds, except for a last line that a kill has cut.
struct RunRecords {
  std::vector<TrainPoint> points;
  std::vector<WatchRecord> watched;
  std::vector<TroubleRecord> troubles;
  std::string outcome;  // in the last line; empty if the run has not ended
  std::string damage;   // the first line that a run does not write, and what is wrong with it; empty if there is none
};

/// Reads the file; it has no records if it does not exist. Throws Error that names the file and the line on a line that
/// a run does not write.
RunRecords read_records(const std::filesystem::path& path);

/// The same without such lines, of which `damage` tells.
RunRecords readable_records(const std::filesystem::path& path);

/// The points of read_records().
inline std::vector<TrainPoint> read_metrics(const std::filesystem::path& path) { return read_records(path).points; }

class MetricsFile {
 public:
  /// Rewrites the file atomically with these points and records, and appends after them.
  MetricsFile(const std::filesystem::path& path, const std::vector<TrainPoint>& history,
              const std::vector<WatchRecord>& watched = {}, const std::vector<TroubleRecord>& troubles = {});

  /// Continues a file whose beginning `mark` is intact: drops the rest, and appends after it.
  MetricsFile(const std::filesystem::path& path, const FileMark& mark);

  /// Appends a line and flushes it to the operating system. Throws Error if writing fails.
  void add(const TrainPoint& point);
  void add(const WatchRecord& record);
  void add(const TroubleRecord& record);
  /// Appends the last line: how the run ended.
  void end(const TrainResult& result);

  /// The size and checksum of the file so far.
  [[nodiscard]] const FileMark& mark() const { return mark_; }

  /// Makes what has been written survive a power failure. May be called from another thread.
  void sync() const;

 private:
  void open();
  void write(const Json& line);

  std::filesystem::path path_;
  Descriptor file_;
  FileMark mark_;
};

}  // namespace plumb
