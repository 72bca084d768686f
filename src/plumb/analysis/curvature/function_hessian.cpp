#include "plumb/analysis/curvature/function_hessian.h"

#include <fmt/format.h>

#include "plumb/base/error.h"
#include "plumb/nn/parameters.h"

namespace plumb {

LinearOperator function_hessian(const Tensor& value, const std::vector<Tensor>& variables) {
  if (variables.empty()) throw Error("a Hessian needs at least one variable");
  if (!value.defined() || value.numel() != 1 || !value.requires_grad()) {
    throw Error("a Hessian needs a single number that depends on the variables",
                "sum the losses, and compute them from tensors that require gradients");
  }
  int64_t n = 0;
  for (const Tensor& variable : variables) n += variable.numel();
  // A constant gradient, such as that of a linear function, has no graph and adds nothing to a product.
  const std::vector<Tensor> gradient = gradients({value.reshape({})}, variables, {}, /*create_graph=*/true);
  return [gradient, variables, n](const Tensor& v) {
    const at::TensorOptions options = variables.front().options();
    if (v.dim() != 1 || v.numel() != n || v.scalar_type() != variables.front().scalar_type()) {
      throw Error(fmt::format("the Hessian over {} elements of type {} cannot multiply {} elements of type {}", n,
                              at::toString(variables.front().scalar_type()), v.numel(), at::toString(v.scalar_type())));
    }
    const std::vector<Tensor> pieces = split_like(v, variables);
    std::vector<Tensor> outputs;
    std::vector<Tensor> weights;
    for (size_t i = 0; i < gradient.size(); ++i) {
      if (!gradient[i].requires_grad()) continue;
      outputs.push_back(gradient[i]);
      weights.push_back(pieces[i]);
    }
    if (outputs.empty()) return at::zeros({n}, options.requires_grad(false));
    return joined(gradients(outputs, variables, weights, /*create_graph=*/false, /*retain_graph=*/true));
  };
}

}  // namespace plumb
