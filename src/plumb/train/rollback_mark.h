// An in-memory copy of the state that a rollback without files returns to.
#pragma once

#include <vector>

#include "plumb/base/json.h"
#include "plumb/io/safetensors.h"
#include "plumb/model/model.h"
#include "plumb/nn/carried_state.h"
#include "plumb/optim/optimizer.h"
#include "plumb/run/watch.h"
#include "plumb/train/evaluated_weights.h"

namespace plumb {

class RollbackMark {
 public:
  RollbackMark() = default;

  /// Copies the model's values, the states of the optimizer and the watches and, if `averaging` has begun, the average
  /// of the weights. `carried`: a stream's carried state; `state`: the document state.json.
  RollbackMark(const Model& model, const Optimizer& optimizer, const RunWatches& watches, EvaluatedWeights& weights,
               bool averaging, CarriedState carried, Json state);

  /// Whether there is a state to return to.
  [[nodiscard]] bool defined() const { return parameters_.defined(); }

  /// Restores the tensors, and returns the state document. The caller restores that and `carried`. Must be defined.
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
