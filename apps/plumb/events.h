// TensorBoard event files of training runs.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "plumb/report/tensorboard.h"
#include "plumb/train/trainer.h"

namespace plumb::app {

/// Writes each point of a run to an event file in the run's directory, one file per run.
class EventFiles {
 public:
  void write(const std::filesystem::path& run, const TrainPoint& point);

 private:
  std::map<std::string, std::unique_ptr<EventWriter>> writers_;
};

}  // namespace plumb::app
