// The Hessian of any function that LibTorch differentiates twice, for a caller with a function instead of a model.
#pragma once

#include <vector>

#include "plumb/analysis/curvature/lanczos.h"

namespace plumb {

/// v → ∂²f/∂x²·v, where x is all of the variables, their elements one after another: (n), the sum of their sizes.
/// `value` is f(x), one element with its graph, which the operator keeps; a variable that plays no part in f gives
/// zeros. The operator throws Error on a vector of another length or type, this function if `value` is not one
/// differentiable number or there are no variables.
LinearOperator function_hessian(const Tensor& value, const std::vector<Tensor>& variables);

}  // namespace plumb
