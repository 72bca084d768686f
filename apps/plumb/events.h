// TensorBoard event files of training runs.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "plumb/report/tensorboard.h"
#include "plumb/train/trainer.h"

namespace plumb::app {

/// Writes the points and the watch records of runs to event files, one in each run's directory.
class EventFiles {
 public:
  void write(const std::filesystem::path& run, const TrainPoint& point);
  /// Writes every number of a record under its path: "watch/curvature/hessian/value".
  void write(const std::filesystem::path& run, const WatchRecord& record);
  /// Discards what was written after `step`: the run has gone back to that step.
  void go_back(const std::filesystem::path& run, int64_t step);

 private:
  EventWriter& writer_of(const std::filesystem::path& run, int64_t step);

  std::map<std::string, std::unique_ptr<EventWriter>> writers_;
};

}  // namespace plumb::app
