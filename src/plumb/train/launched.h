// Runs whose processes were started by a launcher, such as torchrun, srun or mpirun, or by rank 0 on its own machine.
#pragma once

#include <exception>
#include <functional>
#include <optional>

#include "plumb/task/task.h"
#include "plumb/train/trainer.h"

namespace plumb {

/// The threads of this process while other processes of the same run compute on the same processors.
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

/// A signal has ended the run before all of its processes had joined.
class JoiningStopped : public Error {
 public:
  JoiningStopped() : Error("interrupted before all processes had joined") {}
};

/// Calls `train` with the group of the processes that a launcher has started, this one among them, or with nothing if
/// the environment specifies no group. If it throws, the others are told why this process ends. Returns the result of
/// `train`, or that of a run stopped at its beginning if `hooks.give_up` asks for it while the others join.
TrainResult train_launched(const TrainConfig& config, const TrainHooks& hooks,
                           const std::function<TrainResult(const std::optional<Group>&)>& train);

/// Runs `work` and returns its result. If it throws, the other processes are told why this one ends.
template <typename Work>
auto telling_others(const Group& group, const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    group.fail(error.what());
    throw;
  }
}

/// What rank 0 tells the others once it has opened the run directory, unless the run has ended before: then, how.
constexpr const char* kTrain = "train";

/// Trains as one of the ranks above 0; only rank 0 reports and writes.
TrainResult train_as_worker(const RunConfig& config, const Task& task, const Group& group, const TrainHooks& hooks);

}  // namespace plumb
