#include "plumb/train/rollback_mark.h"

#include <utility>

#include "plumb/trouble/inspection.h"

namespace plumb {

RollbackMark::RollbackMark(const Model& model, const Optimizer& optimizer, const RunWatches& watches,
                           EvaluatedWeights& weights, bool averaging, CarriedState carried, Json state)
    : parameters_(model.parameters().flat().detach().clone()),
      buffers_(copies_of_buffers(model.parameters())),
      carried_(std::move(carried)),
      state_(std::move(state)) {
  for (const auto& [name, tensor] : optimizer.state()) optimizer_.emplace_back(name, tensor.clone());
  for (const auto& [name, tensor] : watches.state()) watches_.emplace_back(name, tensor.clone());
  if (const Tensor average = averaging ? weights.received() : Tensor(); average.defined()) average_ = average.clone();
}

const Json& RollbackMark::restore(Model& model, Optimizer& optimizer, RunWatches& watches,
                                  EvaluatedWeights& weights) const {
  const at::NoGradGuard no_graph;
  model.parameters().flat().copy_(parameters_);
  restore_buffers(model.parameters(), buffers_);
  optimizer.load_state(optimizer_, "memory");
  watches.load_state(watches_);
  if (average_.defined()) weights.received().copy_(average_);
  return state_;
}

}  // namespace plumb
