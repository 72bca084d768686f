// The Hessian of any function that LibTorch can differentiate twice, for callers with a function instead of a model.
#pragma once

#include <vector>

#include "plumb/analysis/curvature/lanczos.h"

namespace plumb {

/// v → ∂²f/∂x²·v, where x is the concatenation of all variables: (n), the sum of their sizes.
/// `value` is f(x), one element with its graph, which the operator keeps; a variable without influence on f gives
/// zeros. The operator throws Error on a vector of another length or type, this function if `value` is not one
/// differentiable number or there are no variables.
LinearOperator function_hessian(const Tensor& value, const std::vector<Tensor>& variables);

}  // namespace plumb
