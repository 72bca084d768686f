// metrics.jsonl: the history of a run, a line a point, written as the run goes.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "plumb/train/trainer.h"

namespace plumb {

/// The points in the file, up to a line that a kill cut short. An absent file holds none.
std::vector<TrainPoint> read_metrics(const std::filesystem::path& path);

class MetricsFile {
 public:
  /// Begins the file anew with the points that are known already, atomically, and appends from there on.
  MetricsFile(const std::filesystem::path& path, const std::vector<TrainPoint>& history);

  /// Appends a line and hands it to the operating system. Throws Error if writing fails.
  void add(const TrainPoint& point);
  /// The last line: how the run ended.
  void end(const TrainResult& result);

 private:
  void write(const Json& line);

  std::filesystem::path path_;
  std::ofstream out_;
};

}  // namespace plumb
