// TensorBoard event files of training runs.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "plumb/report/tensorboard.h"
#include "plumb/train/trainer.h"

namespace plumb::app {

/// Writes each point of a run and each record of its watches to an event file in the run's directory, one file per run.
class EventFiles {
 public:
  void write(const std::filesystem::path& run, const TrainPoint& point);
  /// Every number of a record, under its path: "watch/curvature/hessian/value".
  void write(const std::filesystem::path& run, const WatchRecord& record);
  /// What was written after `step` does not count: the run has gone back to it.
  void go_back(const std::filesystem::path& run, int64_t step);

 private:
  EventWriter& writer_of(const std::filesystem::path& run, int64_t step);

  std::map<std::string, std::unique_ptr<EventWriter>> writers_;
};

}  // namespace plumb::app
