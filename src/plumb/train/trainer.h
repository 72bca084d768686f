// The training loop: forward and backward passes, optimizer steps, evaluation and measurements.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plumb/model/model.h"
#include "plumb/parallel/group.h"
#include "plumb/run/config.h"
#include "plumb/run/point.h"
#include "plumb/run/watch.h"
#include "plumb/task/task.h"
#include "plumb/train/observer.h"

namespace plumb {

struct Snapshot;

/// How a run is carried out, which does not change its result.
struct TrainOptions {
  /// Whether to try a forward and backward pass on the epoch's largest batches first, without an update, so that memory
  /// runs out immediately or not at all. Only rank 0's value counts.
  bool dry_pass = false;
  /// Where a state that is too large for one process is kept until it is saved; empty: in memory. run_training sets it.
  std::filesystem::path spills_to{};
  /// Of run_training: whether launched processes that may use the same processors divide the threads among themselves.
  bool share_threads = false;
  /// Measures the peak rate of this process in FLOP/s (ops/peak_rate.h), from which points get their ceiling_fraction:
  /// called once before the first step, if there is any. Empty: points have none.
  std::function<double()> peak_rate{};
};

/// The learning rates of the last step that was taken and of the next one.
struct RateChange {
  double last = 0, next = 0;
};

/// A training run, which can be saved and resumed at any step with the same result, bit for bit.
///
/// Several processes train one model by sharing every batch: each of n processes takes every n-th example, gradients
/// are summed, and all take the same step. Neither the number of processes nor train.micro_batch_tokens affects the
/// batches, the dropout masks or the divisor of the loss (the total weight of a step's labels): the result is the same
/// up to rounding, and both may change when a run is resumed. Norms over the batch are the exception: their statistics
/// are over the tokens computed together, in one process or, with train.synchronize_norms, in all.
class Trainer {
 public:
  /// Trains the model from its current parameters on the task's split "train", and evaluates on "valid" if it exists.
  /// Model and task must outlive the trainer. `watch`: what to measure along the way, which does not change the run.
  /// Throws Error on an invalid configuration or unsuitable data.
  Trainer(Model& model, const TrainConfig& config, const Task& task, const WatchConfig& watch = {});
  ~Trainer();

  /// Trains to the end. Divergence is an outcome, not an error. Throws Error that names the batch if memory runs out.
  /// Afterward, unless the run diverged, the model holds the evaluated weights: with train.average_decay or an
  /// averaging optimizer, the average. With train.shard = "parameters", it holds them after make_whole().
  TrainResult run(const TrainObservers& observers = {}, const TrainOptions& options = {});

  /// Write and read a directory with model.safetensors (the evaluated weights), optimizer.safetensors and state.json;
  /// if the trained weights differ, trained.safetensors; if the watches have a state, watch.safetensors, which may be
  /// absent when reading; within an epoch of a stream, carried.safetensors, the state for the next step. `load` throws
  /// Error if a file is missing or damaged, or does not fit the model, the optimizer or the batch plan; of a model
  /// without memory, it reads state.json only, and `join` the rest.
  void save(const std::filesystem::path& directory) const;
  void load(const std::filesystem::path& directory);

  /// Trains together with other processes, all of which call this before `run`: takes process 0's parameters, optimizer
  /// state and progress. A model whose parameters have no memory yet (train/begun_model.h) is initialized by
  /// train.seed, or takes what process 0 has loaded, in shards. Throws Error if a stream would be divided among several
  /// processes.
  void join(const Group& group);

  /// Makes the model whole in this process if its parameters are cut among several, all of which call this after `run`.
  void make_whole();

  /// Ends the exchange with the other processes, all of which call this after `run`.
  void leave();

  /// Sets the history of a resumed run, without points and records after the current step.
  void set_history(std::vector<TrainPoint> history, std::vector<WatchRecord> watched = {});

  [[nodiscard]] const std::vector<TrainPoint>& history() const;
  [[nodiscard]] const std::vector<WatchRecord>& watched() const;
  [[nodiscard]] const std::vector<TroubleRecord>& troubles() const;
  [[nodiscard]] int64_t step() const;
  /// The steps of the whole run, unless train.epochs ends it earlier.
  [[nodiscard]] int64_t planned_steps() const;
  /// The step whose checkpoint a rollback returns to, which is therefore kept; 0 without rollbacks.
  [[nodiscard]] int64_t rollback_step() const;
  /// The steps so far whose checkpoints train.keep_every keeps for good, ascending from 0; empty without keep_every.
  [[nodiscard]] std::vector<int64_t> permanent_steps() const;
  [[nodiscard]] const Model& model() const;

  /// Of a run that was shorter by the configuration `former`: whether its steps so far had other learning rates, or
  /// froze other groups, than they would have had as part of this run; and these rates. Empty if not.
  [[nodiscard]] std::optional<RateChange> change_from(const TrainConfig& former) const;

  /// What `save` writes (run/snapshot.h); shares its tensors with the run.
  [[nodiscard]] Snapshot snapshot() const;

  /// The steps of the best evaluations so far by train.best_metric, best first; at most train.keep_best, and none if
  /// that is 1.
  [[nodiscard]] std::vector<int64_t> best_steps() const;
  /// The step of the best evaluation; 0 before the first.
  [[nodiscard]] int64_t best_step() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// Trains in memory, without files.
TrainResult train(Model& model, const TrainConfig& config, const Task& task, const TrainObservers& observers = {},
                  const WatchConfig& watch = {});

}  // namespace plumb
