// The state that a rollback without files returns to, copied in memory.
#pragma once

#include <vector>

#include "plumb/base/json.h"
#include "plumb/io/safetensors.h"
#include "plumb/model/model.h"
#include "plumb/optim/optimizer.h"
#include "plumb/train/evaluated_weights.h"

namespace plumb {

class RollbackMark {
 public:
  RollbackMark() = default;

  /// Copies the values of the model, the optimizer's state and, if it has begun (`averaging`), the average of the
  /// weights. `state`: the document state.json.
  RollbackMark(const Model& model, const Optimizer& optimizer, EvaluatedWeights& weights, bool averaging, Json state);

  /// Puts the tensors back; returns the state, which is left to the caller.
  const Json& restore(Model& model, Optimizer& optimizer, EvaluatedWeights& weights) const;

 private:
  Tensor parameters_;
  std::vector<Tensor> buffers_;
  NamedTensors optimizer_;
  Json state_;
  Tensor average_;  // undefined if there is none
};

}  // namespace plumb
