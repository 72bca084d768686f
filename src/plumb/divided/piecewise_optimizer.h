// An optimizer of pieces of parameters, whose other pieces are updated by other processes: ZeRO-2 and -3 (Rajbhandari
// et al. 2020, arXiv 1910.02054).
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "plumb/divided/parameter_shards.h"
#include "plumb/optim/wrapped_optimizer.h"

namespace plumb {

/// Updates this rank's pieces (ParameterShards::own) from pieces of the gradients. The inner optimizer must act by
/// element; the values are then those of one optimizer of all parameters.
class PiecewiseOptimizer final : public WrappedOptimizer {
 public:
  /// `inner`: of shards.own(). The shards must outlive it. The state is that of this rank's pieces, which
  /// ParameterShards::whole puts together.
  PiecewiseOptimizer(const ParameterShards& shards, std::unique_ptr<Optimizer> inner)
      : WrappedOptimizer(shards.own(), std::move(inner)), shards_(&shards) {}

  /// Takes this rank's pieces of the state of whole parameters, or these pieces.
  void load_state(const NamedTensors& tensors, const std::string& origin) override;

 private:
  void update(const OptimizerStep& step) override;

  const ParameterShards* shards_;
};

}  // namespace plumb
