// An optimizer of pieces of parameters, whose other pieces are updated by other processes: ZeRO-2 and -3 (Rajbhandari
// et al. 2020, arXiv 1910.02054).
#pragma once

#include <memory>
#include <string>

#include "plumb/nn/parameter_shards.h"
#include "plumb/optim/optimizer.h"

namespace plumb {

/// Updates this rank's pieces (ParameterShards::own) from pieces of the gradients. The inner optimizer must act by
/// element; the values are then those of one optimizer of all parameters.
class PiecewiseOptimizer final : public Optimizer {
 public:
  /// `inner`: of shards.own(). The shards must outlive it.
  PiecewiseOptimizer(const ParameterShards& shards, std::unique_ptr<Optimizer> inner);

  /// This rank's pieces, which ParameterShards::whole puts together.
  [[nodiscard]] NamedTensors state() const override { return inner_->state(); }
  /// Takes this rank's pieces of the state of whole parameters, or these pieces.
  void load_state(const NamedTensors& tensors, const std::string& origin) override;

  [[nodiscard]] Beginning beginning() const override { return inner_->beginning(); }
  [[nodiscard]] bool acts_by_element() const override { return true; }

 private:
  void update(const OptimizerStep& step) override;

  const ParameterShards* shards_;
  std::unique_ptr<Optimizer> inner_;
};

}  // namespace plumb
