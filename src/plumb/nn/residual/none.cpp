// No norm, He et al. 2016, arXiv 1512.03385:  x ← x + dropout(f(x)), the residual connection alone.
#include "plumb/nn/residual/tensor2tensor.h"

namespace plumb {
namespace {

const bool registered =
    residual_schemes().add("none", "x ← x + dropout(f(x)); no norm", "He et al. 2016, arXiv 1512.03385",
                           [](Parameters& parameters, const StackShape& shape) {
                             return make_tensor2tensor_scheme("", "da", parameters, shape);
                           });

}  // namespace
}  // namespace plumb
