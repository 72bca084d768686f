// The derivative of a batch's logits with respect to the parameters, J, as products with vectors in both directions.
#pragma once

#include <cstddef>
#include <vector>

#include "plumb/model/model.h"

namespace plumb {

/// J·v without forward-mode differentiation: Jᵀu is linear in u, so a second backward pass, through vᵀ(Jᵀu) to u, gives
/// J·v. Keeps the graphs of the logits and of Jᵀu; no dropout. The model must outlive it, and its parameters must not
/// change during its lifetime.
class LogitJacobian {
 public:
  LogitJacobian(Model& model, const Batch& batch);

  /// (labels, classes), without a graph.
  [[nodiscard]] Tensor logits() const { return logits_.detach(); }

  /// J·v → (labels, classes). `v` has one piece for each parameter at `places` (in Parameters::all()), of its shape;
  /// for all other parameters v is 0.
  [[nodiscard]] Tensor times(const std::vector<size_t>& places, const std::vector<Tensor>& v) const;

  /// The pieces of Jᵀu for the parameters at `places`, of their shapes; u: (labels, classes).
  [[nodiscard]] std::vector<Tensor> transposed_times(const std::vector<size_t>& places, const Tensor& u) const;

 private:
  std::vector<Tensor> values_;  // the parameters
  Tensor logits_;               // with graph
  Tensor u_;                    // (labels, classes), a variable
  std::vector<Tensor> pulled_;  // Jᵀu by parameter, with graph to u
};

/// 0, 1, …: the places of all parameters.
std::vector<size_t> all_places(const Parameters& parameters);

}  // namespace plumb
