// TensorBoard event files of training runs.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "plumb/report/tensorboard.h"
#include "plumb/train/trainer.h"

namespace plumb::app {

/// Writes the points and the watch records of runs to event files, one in each run's directory. As an observer: of one
/// run, in its directory.
class EventFiles final : public TrainObserver {
 public:
  void on_place(const std::filesystem::path& run) override { place_ = run; }
  void on_point(const TrainPoint& point) override { write(place_, point); }
  void on_watch(const WatchRecord& record) override { write(place_, record); }
  void on_rollback(const Trainer& trainer) override { go_back(place_, trainer.step()); }

  void write(const std::filesystem::path& run, const TrainPoint& point);
  /// Writes every number of a record under its path: "watch/curvature/hessian/value".
  void write(const std::filesystem::path& run, const WatchRecord& record);
  /// Discards what was written after `step`: the run has gone back to that step.
  void go_back(const std::filesystem::path& run, int64_t step);

 private:
  EventWriter& writer_of(const std::filesystem::path& run, int64_t step);

  std::filesystem::path place_;
  std::map<std::string, std::unique_ptr<EventWriter>> writers_;
};

}  // namespace plumb::app
