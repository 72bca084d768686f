// Runs whose processes are started by a launcher, such as torchrun, srun or mpirun, or by rank 0 on its own machine.
#pragma once

#include <functional>
#include <optional>

#include "plumb/task/task.h"
#include "plumb/train/trainer.h"

namespace plumb {

/// Limits this process to its share of the threads, while `processes` processes of the run share the processors.
class ThreadShare {
 public:
  explicit ThreadShare(int64_t processes);
  ~ThreadShare();
  ThreadShare(const ThreadShare&) = delete;
  ThreadShare& operator=(const ThreadShare&) = delete;

  [[nodiscard]] int64_t own() const { return own_; }

 private:
  int64_t all_;
  int64_t own_;
};

/// Thrown if the run is interrupted before all of its processes have joined.
class JoiningStopped : public Error {
 public:
  JoiningStopped() : Error("interrupted before all processes had joined") {}
};

/// Calls `train` with the group of processes that a launcher has started, or with nothing if the environment specifies
/// no group. If `train` throws, the other processes are told the error. Returns the result of `train`, or that of a run
/// stopped before its first step if an observer gives up while the others join. `share_threads`: TrainOptions.
TrainResult train_launched(const TrainConfig& config, const TrainObservers& observers, bool share_threads,
                           const std::function<TrainResult(const std::optional<Group>&)>& train);

/// What rank 0 tells the others once it has opened the run directory: how the run has ended, or nothing, which means
/// that they train. Every process of the group calls it; returns what rank 0 said.
std::optional<RunOutcome> broadcast_outcome(const Group& group, std::optional<RunOutcome> outcome);

/// Trains as one of the ranks above 0. Only rank 0 reports and writes; of the observers, this one asks whether to stop.
TrainResult train_as_worker(const RunConfig& config, const Task& task, const Group& group,
                            const TrainObservers& observers);

}  // namespace plumb
