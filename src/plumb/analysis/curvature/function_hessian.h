// The Hessian of any function that LibTorch can differentiate twice, for callers with a function instead of a model.
#pragma once

#include <vector>

#include "plumb/analysis/curvature/lanczos.h"

namespace plumb {

/// v → ∂²f/∂x²·v, where x is the concatenation of all variables, (n). `value` is f(x), a single element whose graph the
/// operator keeps; a variable that does not affect f gives zeros. Throws Error if `value` is not a single
/// differentiable number or there are no variables; the operator throws Error on a vector of the wrong length or type.
LinearOperator function_hessian(const Tensor& value, const std::vector<Tensor>& variables);

}  // namespace plumb
