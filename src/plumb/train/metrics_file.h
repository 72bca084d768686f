// metrics.jsonl: the history of a run, one point or record of its watches per line, written during the run.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "plumb/train/seal.h"
#include "plumb/train/trainer.h"

namespace plumb {

/// The points in the file, up to a line truncated by a kill. An absent file contains none.
std::vector<TrainPoint> read_metrics(const std::filesystem::path& path);

/// The same for its records of trouble.
std::vector<TroubleRecord> read_trouble_records(const std::filesystem::path& path);

/// The same for the records of its watches.
std::vector<WatchRecord> read_watch_records(const std::filesystem::path& path);

class MetricsFile {
 public:
  /// Rewrites the file atomically with the known points and records, and appends from there on.
  MetricsFile(const std::filesystem::path& path, const std::vector<TrainPoint>& history,
              const std::vector<WatchRecord>& watched = {}, const std::vector<TroubleRecord>& troubles = {});

  /// Goes on with a file, of which the part `kept` is intact: drops the rest, and appends from there on.
  MetricsFile(const std::filesystem::path& path, const FileMark& kept);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  /// Appends a line and flushes it to the operating system. Throws Error if writing fails.
  void add(const TrainPoint& point);
  void add(const WatchRecord& record);
  void add(const TroubleRecord& record);
  /// The last line: how the run ended.
  void end(const TrainResult& result);

  /// What has been written so far.
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
