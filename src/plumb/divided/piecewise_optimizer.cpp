#include "plumb/divided/piecewise_optimizer.h"

#include "plumb/optim/parameter_set.h"

namespace plumb {

void PiecewiseOptimizer::update(const OptimizerStep& step) {
  inner().step(step.gradients, step.parameters, step.gradient_scale);
  shards_->publish();
}

void PiecewiseOptimizer::load_state(const NamedTensors& tensors, const std::string& origin) {
  NamedTensors pieces;
  for (const StateTensor& own : state_tensors()) {
    const std::string name = name_of(own, parameters());
    const Tensor& stored = find_tensor(tensors, name, origin);
    pieces.emplace_back(name, own.parameter ? shards_->piece(*own.parameter, stored) : stored);
  }
  inner().load_state(pieces, origin);
}

}  // namespace plumb
