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
struct Snapshot;

/// Callbacks of a run; each may be empty.
struct TrainHooks {
  /// Receives each point of the history.
  std::function<void(const TrainPoint&)> point;
  /// Receives each record of the watches.
  std::function<void(const WatchRecord&)> watched;
  /// Receives each record of numerical trouble.
  std::function<void(const TroubleRecord&)> trouble;
  /// Called after each step, and once more before a slow metric of the last; returning true ends the run as "stopped".
  std::function<bool()> stop;
  /// Called repeatedly while other processes have not joined yet; returning true ends the run as "stopped".
  std::function<bool()> give_up;
  /// Called when a checkpoint is due, and at the end; before and after a slow metric of the last step.
  std::function<void(const Trainer&)> checkpoint;
  /// For a rollback: loads the checkpoint of this step into the trainer; false if that checkpoint is missing. Without
  /// it, the trainer keeps a copy in memory whenever a checkpoint is due.
  std::function<bool(Trainer&, int64_t step)> go_back;
  /// Called after a rollback; the history ends at its checkpoint.
  std::function<void(const Trainer&)> went_back;
  /// Called after each validation that improves on all earlier ones.
  std::function<void(const Trainer&)> best;
  /// Called once before the first step that is taken: the peak rate of this process in FLOP/s (ops/peak_rate.h),
  /// with which points have a ceiling_fraction.
  std::function<double()> peak_rate;
  /// Called before `best`, and for every further evaluation that is among the train.keep_best best, if that is above 1.
  std::function<void(const Trainer&)> one_of_the_best;
  /// Label of the progress display; empty: no display.
  std::string progress;
  /// Whether the largest batches of the epoch first go through a forward and a backward pass that changes nothing, so
  /// that memory runs out at once or not at all. Of several processes, rank 0's counts.
  bool dry_pass = false;
  /// Whether processes of a launcher that may use the same processors divide this one's threads among them.
  bool share_threads = false;
};

/// One training run, which can be saved and resumed at any step with the same result, bit for bit.
///
/// Several processes train one model by sharing every batch: each takes every n-th of its examples, gradients are
/// summed, and all take the same step. Neither their number nor train.micro_batch_tokens has an influence on the
/// batches, the dropout masks or the divisor of the loss, the total weight of the labels of a step: the result is the
/// same up to rounding, and a run may be continued with others. Norms over a batch are the exception: their statistics
/// are those of the tokens computed together, in one process or, with train.synchronize_norms, in all.
class Trainer {
 public:
  /// Trains the model from its current parameters on the task's splits "train" and, if it exists, "valid". Model and
  /// task must outlive the trainer. Throws Error on a configuration or data that cannot be trained on.
  /// With `watch`, measures along the way; the run is the same without, bit for bit.
  Trainer(Model& model, const TrainConfig& config, const Task& task, const WatchConfig& watch = {});
  ~Trainer();

  /// Trains to the end. Divergence is an outcome, not an error. Throws Error that names the batch if memory runs out.
  /// Afterward, unless it diverged, the model has the weights that are evaluated and kept: with train.average_decay or
  /// an optimizer that averages, not those that were trained.
  TrainResult run(const TrainHooks& hooks = {});

  /// Writes model.safetensors, optimizer.safetensors and state.json into a directory, or reads them; if the watches
  /// have a state, watch.safetensors too, which may be absent when reading; within an epoch of a stream, what is
  /// carried to the next step, carried.safetensors. model.safetensors has the evaluated weights; if others are trained,
  /// they are in trained.safetensors.
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
  [[nodiscard]] const std::vector<TroubleRecord>& troubles() const;
  [[nodiscard]] int64_t step() const;
  /// The step whose checkpoint a rollback returns to, and which is therefore kept; 0 if there are no rollbacks.
  [[nodiscard]] int64_t rollback_step() const;
  /// The steps up to this one whose checkpoints train.keep_every keeps for good, in order; with 0, unless there are
  /// none.
  [[nodiscard]] std::vector<int64_t> kept_steps() const;
  [[nodiscard]] const Model& model() const;

  /// What `save` writes (train/snapshot.h); shares the tensors with the run.
  [[nodiscard]] Snapshot snapshot() const;

  /// The steps of the best evaluations so far by train.best_metric, the best first; at most train.keep_best.
  [[nodiscard]] std::vector<int64_t> best_steps() const;
  /// The step of the best one; 0 before the first.
  [[nodiscard]] int64_t best_step() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// Trains in memory, without files.
TrainResult train(Model& model, const TrainConfig& config, const Task& task, const TrainHooks& hooks = {},
                  const WatchConfig& watch = {});

}  // namespace plumb
