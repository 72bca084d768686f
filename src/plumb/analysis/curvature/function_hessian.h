// The Hessian of any function that LibTorch can differentiate twice, for callers with a function instead of a model.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plumb/analysis/curvature/lanczos.h"

namespace plumb {

/// A term of a function: a single element with its graph, computed anew at each call.
using FunctionTerm = std::function<Tensor()>;

/// The Hessian ∂²f/∂x² of a sum f of terms, where x is the concatenation of all variables, (n): products by reverse
/// over reverse (Pearlmutter 1994). A variable that does not affect f has a row of zeros. The variables must not change
/// during the operator's lifetime.
class FunctionHessian {
 public:
  /// `graph_memory`: bytes for gradient graphs kept between products, if the machine has them and `reserved` besides. A
  /// term whose graph is kept costs two gradients per product; one whose graph does not fit is computed and
  /// differentiated again and costs three. Throws Error if there are no variables; it or a product does if a term is
  /// not a single differentiable number.
  ///
  /// Several processes may compute each term together, by operations that are differentiable twice themselves, each
  /// with variables of its own. They make the same calls, and get the products for their own variables. `on_any`:
  /// whether a condition holds on any of them.
  FunctionHessian(std::vector<Tensor> variables, std::vector<FunctionTerm> terms, int64_t graph_memory,
                  const std::function<bool(bool)>& on_any = {}, int64_t reserved = 0);

  /// The products with several vectors (n). A term whose graph is not kept is differentiated once for all of them.
  /// Throws Error on a vector of the wrong length or type.
  std::vector<Tensor> multiply(const std::vector<Tensor>& vectors);

  /// The products of diagonal blocks with one vector each: v_i → H_ii·v_i. blocks[i]: the places of its variables,
  /// ascending. Exact, and cheaper than one product with H for each: a block needs only the part of a gradient's graph
  /// between it and the function.
  std::vector<Tensor> multiply_blocks(const std::vector<std::vector<size_t>>& blocks,
                                      const std::vector<Tensor>& vectors);

  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] int64_t size_of(const std::vector<size_t>& block) const;
  /// Of a vector.
  [[nodiscard]] at::TensorOptions options() const { return variables_.front().options().requires_grad(false); }
  /// Number of terms that keep their graph: the first ones.
  [[nodiscard]] size_t kept() const { return kept_.size(); }

 private:
  /// The gradient of a term by variable, with graph.
  [[nodiscard]] std::vector<Tensor> differentiate(const FunctionTerm& term) const;

  std::vector<Tensor> variables_;
  std::vector<FunctionTerm> terms_;
  int64_t size_ = 0;
  std::vector<std::vector<Tensor>> kept_;  // gradients
};

/// v → ∂²f/∂x²·v, where x is the concatenation of all variables, (n). `value` is f(x), a single element whose graph the
/// operator keeps; a variable that does not affect f gives zeros. Throws Error if `value` is not a single
/// differentiable number or there are no variables; the operator throws Error on a vector of the wrong length or type.
LinearOperator function_hessian(const Tensor& value, const std::vector<Tensor>& variables);

}  // namespace plumb
