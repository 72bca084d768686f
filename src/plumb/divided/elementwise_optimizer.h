// An optimizer of shards of parameters, whose other shards are updated by other processes: ZeRO-2 and -3 (Rajbhandari
// et al. 2020, arXiv 1910.02054).
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "plumb/divided/parameter_shards.h"
#include "plumb/optim/wrapped_optimizer.h"

namespace plumb {

/// Updates this rank's shards (ParameterShards::local) from shards of the gradients. The inner optimizer must act by
/// element; the values are then those of one optimizer of all parameters.
class ElementwiseOptimizer final : public WrappedOptimizer {
 public:
  /// `inner`: of shards.local(). The shards must outlive it. The state is that of this rank's shards, which
  /// ParameterShards::full puts together.
  ElementwiseOptimizer(const ParameterShards& shards, std::unique_ptr<Optimizer> inner)
      : WrappedOptimizer(shards.local(), std::move(inner)), shards_(&shards) {}

  /// Takes this rank's shards of the state of full parameters, or these shards.
  void load_state(const NamedTensors& tensors, const std::string& origin) override;

 private:
  void update(const OptimizerStep& step) override;

  const ParameterShards* shards_;
};

}  // namespace plumb
