// The Gauss–Newton matrix of any function of outputs, for callers with functions instead of a model.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plumb/analysis/curvature/function_hessian.h"
#include "plumb/analysis/curvature/output_jacobian.h"

namespace plumb {

/// A term ℓ(z(x)) of a function: outputs z of any shape, and ℓ, a single element; with their graphs, anew at each call.
struct ComposedTerm {
  std::function<Tensor()> outputs;
  std::function<Tensor(const Tensor& outputs)> loss;
};

/// G = Σ Jᵀ·(∂²ℓ/∂z²)·J over the terms, with J = ∂z/∂x and x the concatenation of all variables, (n) (Schraudolph
/// 2002): the Hessian without the curvature of the outputs. Positive semidefinite if every ℓ is convex. The interface
/// is that of FunctionHessian.
class FunctionGaussNewton {
 public:
  /// Throws Error as FunctionHessian does, and if no ℓ is curved.
  FunctionGaussNewton(std::vector<Tensor> variables, std::vector<ComposedTerm> terms, int64_t graph_memory);

  /// v → G·v for several vectors (n). Throws Error on a vector of the wrong length or type.
  std::vector<Tensor> multiply(const std::vector<Tensor>& vectors);

  /// v_i → G_ii·v_i; blocks[i]: the places of its variables, ascending.
  std::vector<Tensor> multiply_blocks(const std::vector<std::vector<size_t>>& blocks,
                                      const std::vector<Tensor>& vectors);

  /// The function, its gradient, and for each variable whether some output depends on it.
  FunctionHessian::Point point();

  [[nodiscard]] int64_t size() const { return size_of(all_); }
  [[nodiscard]] int64_t size_of(const std::vector<size_t>& block) const;
  [[nodiscard]] at::TensorOptions options() const { return variables_.front().options().requires_grad(false); }
  /// Number of terms that keep their graph: the first ones.
  [[nodiscard]] size_t kept() const { return kept_.size(); }

 private:
  struct Part {
    OutputJacobian jacobian;
    double value = 0;
    Tensor outputs;  // a variable
    Tensor slope;    // ∂ℓ/∂z, with graph to `outputs`
  };
  [[nodiscard]] Part part_of(const ComposedTerm& term) const;
  template <typename Work>
  void for_each_part(const Work& work);

  std::vector<Tensor> variables_;
  std::vector<ComposedTerm> terms_;
  std::vector<size_t> all_;  // places
  std::vector<Part> kept_;
};

}  // namespace plumb
