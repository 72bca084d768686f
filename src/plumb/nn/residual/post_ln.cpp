// Post-LN, Vaswani et al. 2017, arXiv 1706.03762:  x ← norm(x + dropout(f(x))), no final norm.
#include "plumb/nn/residual/tensor2tensor.h"

namespace plumb {
namespace {

const bool registered =
    residual_schemes().add("post-ln", "x ← norm(x + dropout(f(x)))", "Vaswani et al. 2017, arXiv 1706.03762",
                           [](Parameters& parameters, const StackShape& shape) {
                             return make_tensor2tensor_scheme("", "dan", parameters, shape);
                           });

}  // namespace
}  // namespace plumb
