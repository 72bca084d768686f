// Pre-LN, Xiong et al. 2020, arXiv 2002.04745:  x ← x + dropout(f(norm(x))), and one norm at the end of the stack.
#include "plumb/nn/residual/tensor2tensor.h"

namespace plumb {
namespace {

const bool registered =
    residual_schemes().add("pre-ln", "x ← x + dropout(f(norm(x))), and one norm at the end of each stack",
                           "Xiong et al. 2020, arXiv 2002.04745", [](Parameters& parameters, const StackShape& shape) {
                             return make_tensor2tensor_scheme("n", "da", parameters, shape);
                           });

}  // namespace
}  // namespace plumb
