#include "plumb/optim/piecewise.h"

#include <utility>

#include "plumb/optim/sharded.h"

namespace plumb {

PiecewiseOptimizer::PiecewiseOptimizer(const ParameterShards& shards, std::unique_ptr<Optimizer> inner)
    : Optimizer(shards.own()), shards_(&shards), inner_(std::move(inner)) {}

void PiecewiseOptimizer::update(const OptimizerStep& step) {
  inner_->step(step.gradients, step.parameters, step.gradient_scale);
  shards_->publish();
}

void PiecewiseOptimizer::load_state(const NamedTensors& tensors, const std::string& origin) {
  NamedTensors pieces;
  for (const auto& [name, tensor] : tensors) {
    const auto owner = owner_of(name, shards_->own());
    pieces.emplace_back(name, owner ? shards_->piece(*owner, tensor) : tensor);
  }
  inner_->load_state(pieces, origin);
}

}  // namespace plumb
