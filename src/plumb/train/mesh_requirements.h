// Which runs several processes can divide among themselves.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "plumb/model/model.h"
#include "plumb/optim/optimizer.h"
#include "plumb/run/config.h"

namespace plumb {

/// Throws Error if the configuration has something that a model which is divided among processes cannot have
/// (train.tensor_parallel, train.pipeline_parallel). If only a number does not fit, the hint names the nearest that
/// does.
void require_divisible_run(const TrainConfig& config, const Model& model, const WatchConfig& watch);

/// The same for a run whose optimizer's state, gradients or parameters are sharded (train.shard).
void require_shardable_run(const TrainConfig& config, const Model& model, const Optimizer& optimizer,
                           const WatchConfig& watch);

/// Whether the processes of a run can be divided, which is found without data and memory.
class MeshCheck {
 public:
  explicit MeshCheck(const RunConfig& run);
  /// Throws Error unless they can be divided as this configuration says, which may differ from the run's in that.
  void operator()(const TrainConfig& config) const;

 private:
  RunConfig run_;
  std::unique_ptr<Model> model_;  // without values
  std::unique_ptr<Optimizer> optimizer_;
};

/// Throws Error unless the processes of a run can be divided as it says.
/// `more`: further conditions. If other values of train.tensor_parallel and train.pipeline_parallel fit this number of
/// processes, the hint names the nearest, by the number of times that each is doubled or halved, and `about` it.
void require_mesh(const RunConfig& run, const std::function<void(const TrainConfig&)>& more,
                  const std::function<std::string(const TrainConfig&)>& about);

}  // namespace plumb
