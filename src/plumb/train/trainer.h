// Training: batches of a task through a model, gradients through the optimizer, and measurements along the way.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plumb/model/model.h"
#include "plumb/parallel/group.h"
#include "plumb/task/task.h"
#include "plumb/train/config.h"
#include "plumb/train/point.h"
#include "plumb/train/watch.h"

namespace plumb {

class Trainer;

/// Callbacks of a run; each may be empty.
struct TrainHooks {
  /// Receives each point of the history.
  std::function<void(const TrainPoint&)> point;
  /// Receives each record of the watches.
  std::function<void(const WatchRecord&)> watched;
  /// Called after each step; returning true ends the run as "stopped".
  std::function<bool()> stop;
  /// Called repeatedly while other processes have not joined yet; returning true ends the run as "stopped".
  std::function<bool()> give_up;
  /// Called when a checkpoint is due, and at the end.
  std::function<void(const Trainer&)> checkpoint;
  /// Called after each validation that improves on all earlier ones.
  std::function<void(const Trainer&)> best;
  /// Label of the progress display; empty: no display.
  std::string progress;
  /// Whether processes of a launcher that may use the same processors divide this one's threads among them.
  bool share_threads = false;
};

/// One training run, which can be saved and resumed at any step with the same result, bit for bit.
///
/// Several processes train one model by sharing every batch: each takes every n-th of its examples, gradients are
/// summed, and all take the same step. Without dropout, the result equals that of one process up to rounding; dropout
/// masks differ between processes.
class Trainer {
 public:
  /// Trains the model from its current parameters on the task's splits "train" and, if it exists, "valid". Model and
  /// task must outlive the trainer. Throws Error on a configuration or data that cannot be trained on.
  /// With `watch`, measures along the way; the run is the same without, bit for bit.
  Trainer(Model& model, const TrainConfig& config, const Task& task, const WatchConfig& watch = {});
  ~Trainer();

  /// Trains to the end. Divergence is an outcome, not an error.
  TrainResult run(const TrainHooks& hooks = {});

  /// Writes model.safetensors, optimizer.safetensors and state.json into a directory, or reads them; if the watches
  /// have a state, watch.safetensors too, which may be absent when reading.
  void save(const std::filesystem::path& directory) const;
  void load(const std::filesystem::path& directory);

  /// Trains together with other processes, all of which call this before running: takes the parameters, optimizer state
  /// and progress of process 0.
  void join(const Group& group);

  /// Ends the exchange with the other processes; all call it after running.
  void leave();

  /// The history of a resumed run; points and records after the current step are dropped.
  void set_history(std::vector<TrainPoint> history, std::vector<WatchRecord> watched = {});

  [[nodiscard]] const std::vector<TrainPoint>& history() const;
  [[nodiscard]] const std::vector<WatchRecord>& watched() const;
  [[nodiscard]] int64_t step() const;
  [[nodiscard]] const Model& model() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// Trains in memory, without files.
TrainResult train(Model& model, const TrainConfig& config, const Task& task, const TrainHooks& hooks = {},
                  const WatchConfig& watch = {});

}  // namespace plumb
