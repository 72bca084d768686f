// The state that a rollback without files returns to, copied in memory.
#pragma once

#include <vector>

#include "plumb/base/json.h"
#include "plumb/io/safetensors.h"
#include "plumb/model/model.h"
#include "plumb/nn/carried_state.h"
#include "plumb/optim/optimizer.h"
#include "plumb/train/evaluated_weights.h"
#include "plumb/train/watch.h"

namespace plumb {

class RollbackMark {
 public:
  RollbackMark() = default;

  /// Copies the values of the model, the states of the optimizer and of the watches and, if it has begun (`averaging`),
  /// the average of the weights. `carried`: of a stream; `state`: the document state.json.
  RollbackMark(const Model& model, const Optimizer& optimizer, const RunWatches& watches, EvaluatedWeights& weights,
               bool averaging, CarriedState carried, Json state);

  /// Whether there is a state to return to.
  [[nodiscard]] bool defined() const { return parameters_.defined(); }

  /// Puts the tensors back, except for `carried`; returns the state. Both are left to the caller. Must be defined.
  const Json& restore(Model& model, Optimizer& optimizer, RunWatches& watches, EvaluatedWeights& weights) const;
  [[nodiscard]] const CarriedState& carried() const { return carried_; }

 private:
  Tensor parameters_;
  std::vector<Tensor> buffers_;
  NamedTensors optimizer_, watches_;
  CarriedState carried_;  // no step changes these tensors
  Json state_;
  Tensor average_;  // undefined without an average
};

}  // namespace plumb
