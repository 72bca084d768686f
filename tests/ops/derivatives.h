// A function's value, gradients and Hessian-vector products at one point, to compare implementations.
#pragma once

#include <string>
#include <vector>

#include "support/gradcheck.h"

namespace plumb::testing {

using Tensors = std::vector<Tensor>;

/// With y = f(x) and random w and v of the type of x: y, then g = ∂⟨w, y⟩/∂x, then, if `second`, the derivatives of
/// ⟨v, g⟩ with respect to x and w. f returns one tensor.
inline Tensors derivatives(const TensorFunction& f, const Tensors& inputs, bool second = true) {
  const at::ScalarType type = inputs[0].scalar_type();
  const auto random = [&](const Tensor& like, uint64_t seed) {
    return random_tensor(like.sizes(), seed).to(at::kFloat).to(type);
  };
  Tensors leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.detach().clone().requires_grad_(true));
  const Tensor y = f(leaves)[0];
  const Tensor w = random(y, 101).requires_grad_(second);
  const Tensors first = gradients({y}, leaves, {w}, /*create_graph=*/second);
  Tensors all = {y};
  all.insert(all.end(), first.begin(), first.end());
  if (!second) return all;
  leaves.push_back(w);
  Tensors differentiable, weights;
  for (size_t i = 0; i < first.size(); ++i) {
    if (!first[i].requires_grad()) continue;
    differentiable.push_back(first[i]);
    weights.push_back(random(first[i], 102 + i));
  }
  const Tensors products = gradients(differentiable, leaves, weights);
  all.insert(all.end(), products.begin(), products.end());
  return all;
}

/// The names of the tensors returned by derivatives() for `inputs` inputs.
inline std::string derivative_name(size_t index, size_t inputs) {
  if (index == 0) return "value";
  if (index <= inputs) return "gradient of input " + std::to_string(index - 1);
  return "Hessian-vector product, input " + std::to_string(index - 1 - inputs);
}

}  // namespace plumb::testing
