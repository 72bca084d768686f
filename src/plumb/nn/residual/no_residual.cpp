// No residual connection:  x ← norm(dropout(f(x))), Post-LN without x: the norm stands behind the sub-layer, where
// Post-LN has it, and there is no final norm.
#include "plumb/nn/residual/tensor2tensor.h"

namespace plumb {
namespace {

const bool registered =
    residual_schemes().add("no-residual", "x ← norm(dropout(f(x))): Post-LN without the residual connection", "",
                           [](Parameters& parameters, const StackShape& shape) {
                             return make_tensor2tensor_scheme("", "dn", parameters, shape);
                           });

}  // namespace
}  // namespace plumb
