// Training: batches of a task through a model, gradients through the optimizer, and what is measured on the way.
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

namespace plumb {

class Trainer;

/// What others add to a run; each may be empty.
struct TrainHooks {
  /// Sees each point of the history as it is made.
  std::function<void(const TrainPoint&)> point;
  /// Asked after each step; true ends the run as "stopped".
  std::function<bool()> stop;
  /// Called where a checkpoint is due, and at the end.
  std::function<void(const Trainer&)> checkpoint;
  /// Called after a validation better than any before.
  std::function<void(const Trainer&)> best;
  /// Label of the progress display; empty: none.
  std::string progress;
};

/// One run of training, which can be saved and resumed at any step with the same result to the last bit.
///
/// Several processes train one model by sharing every batch: each takes every n-th of its examples, gradients are
/// summed, and all make the same step. Without dropout the result is that of one process, to rounding; dropout draws
/// other masks in every process.
class Trainer {
 public:
  /// Trains the model from its present parameters on the task's splits "train" and, if there is one, "valid". Model and
  /// task must outlive the trainer. Throws Error on a configuration or data that cannot be trained on.
  Trainer(Model& model, const TrainConfig& config, const Task& task);
  ~Trainer();

  /// Trains to the end. Divergence is an outcome, not an error.
  TrainResult run(const TrainHooks& hooks = {});

  /// Writes model.safetensors, optimizer.safetensors and state.json into a directory, or reads them.
  void save(const std::filesystem::path& directory) const;
  void load(const std::filesystem::path& directory);

  /// Trains together with other processes, which all call this before they run: takes parameters, optimizer and place
  /// of process 0.
  void join(const Group& group);

  /// What a resumed run has measured before; points after the present step are dropped.
  void set_history(std::vector<TrainPoint> history);

  [[nodiscard]] const std::vector<TrainPoint>& history() const;
  [[nodiscard]] int64_t step() const;
  [[nodiscard]] const Model& model() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// Trains in memory, without files.
TrainResult train(Model& model, const TrainConfig& config, const Task& task, const TrainHooks& hooks = {});

}  // namespace plumb
