#include "plumb/divided/elementwise_optimizer.h"

#include "plumb/optim/parameter_set.h"

namespace plumb {

void ElementwiseOptimizer::update(const OptimizerStep& step) {
  inner().step(step.gradients, step.parameters, step.gradient_scale);
  shards_->all_gather();
}

void ElementwiseOptimizer::load_state(const NamedTensors& tensors, const std::string& origin) {
  NamedTensors shards;
  for (const StateTensor& own : state_tensors()) {
    const std::string name = name_of(own, parameters());
    const Tensor& stored = find_tensor(tensors, name, origin);
    shards.emplace_back(name, own.parameter ? shards_->shard(*own.parameter, stored) : stored);
  }
  inner().load_state(shards, origin);
}

}  // namespace plumb
