#include "plumb/optim/piecewise.h"

#include <utility>

#include "plumb/base/error.h"
#include "plumb/optim/sharded.h"

namespace plumb {

PiecewiseOptimizer::PiecewiseOptimizer(const ParameterShards& shards, std::unique_ptr<Optimizer> inner)
    : Optimizer(shards.own()), shards_(&shards), inner_(std::move(inner)) {}

void PiecewiseOptimizer::update(const OptimizerStep& step) {
  all_.clear();
  inner_->step(step.gradients, step.parameters, step.gradient_scale);
  shards_->publish();
}

void PiecewiseOptimizer::collect() {
  all_.clear();
  for (const auto& [name, piece] : inner_->state()) {
    const auto owner = owner_of(name, shards_->own());
    const Tensor whole = owner ? shards_->whole(*owner, piece) : piece;
    if (shards_->group().rank() == 0) all_.emplace_back(name, whole.is_alias_of(piece) ? whole.clone() : whole);
  }
}

NamedTensors PiecewiseOptimizer::state() const {
  if (all_.empty()) throw Error("the optimizer's state is cut among the processes");
  return all_;
}

void PiecewiseOptimizer::load_state(const NamedTensors& tensors, const std::string& origin) {
  all_.clear();
  NamedTensors pieces;
  for (const auto& [name, tensor] : tensors) {
    const auto owner = owner_of(name, shards_->own());
    pieces.emplace_back(name, owner ? shards_->piece(*owner, tensor) : tensor);
  }
  inner_->load_state(pieces, origin);
}

}  // namespace plumb
