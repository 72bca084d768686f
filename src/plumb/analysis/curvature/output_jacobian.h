// The derivative of a function's outputs with respect to variables, J, as products with vectors in both directions.
#pragma once

#include <cstddef>
#include <vector>

#include "plumb/ops/torch.h"

namespace plumb {

/// J·v without forward-mode differentiation: Jᵀu is linear in u, so a second backward pass, through vᵀ(Jᵀu) to u, gives
/// J·v. Keeps the graphs of the outputs and of Jᵀu. The variables must not change during its lifetime.
class OutputJacobian {
 public:
  /// `outputs`: of any shape, with their graph.
  OutputJacobian(std::vector<Tensor> variables, Tensor outputs);

  /// Without a graph.
  [[nodiscard]] Tensor outputs() const { return outputs_.detach(); }

  /// Whether the outputs depend on the variable at this place.
  [[nodiscard]] bool depends_on(size_t place) const { return pulled_[place].requires_grad(); }

  /// J·v, of the outputs' shape. `v` has one piece for each variable at `places`, of its shape; for all others v is 0.
  [[nodiscard]] Tensor times(const std::vector<size_t>& places, const std::vector<Tensor>& v) const;

  /// The pieces of Jᵀu for the variables at `places`, of their shapes; u has the outputs' shape.
  [[nodiscard]] std::vector<Tensor> transposed_times(const std::vector<size_t>& places, const Tensor& u) const;

 private:
  std::vector<Tensor> variables_;
  Tensor outputs_;              // with graph
  Tensor u_;                    // of the outputs' shape, a variable
  std::vector<Tensor> pulled_;  // Jᵀu by variable, with graph to u
};

}  // namespace plumb
