// metrics.jsonl: the history of a run, one point, watch record or trouble record per line, written during the run.
#pragma once

#include <filesystem>
#include <fstream>
#include <vector>

#include "plumb/run/point.h"
#include "plumb/run/seal.h"

namespace plumb {

/// Reads the points of the file, up to a line truncated by a kill; empty if the file does not exist. Throws Error that
/// names the file on a malformed point.
std::vector<TrainPoint> read_metrics(const std::filesystem::path& path);

/// The same for trouble records.
std::vector<TroubleRecord> read_trouble_records(const std::filesystem::path& path);

/// The same for watch records.
std::vector<WatchRecord> read_watch_records(const std::filesystem::path& path);

class MetricsFile {
 public:
  /// Rewrites the file atomically with these points and records, and appends after them.
  MetricsFile(const std::filesystem::path& path, const std::vector<TrainPoint>& history,
              const std::vector<WatchRecord>& watched = {}, const std::vector<TroubleRecord>& troubles = {});

  /// Continues a file whose beginning `kept` is intact: drops the rest, and appends after it.
  MetricsFile(const std::filesystem::path& path, const FileMark& kept);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

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
  std::ofstream out_;
  FileMark mark_;
  int descriptor_ = -1;  // of the same file, for sync()
};

}  // namespace plumb
