// Mix-LN, Li et al. 2024, arXiv 2412.13795: Post-LN in the first ⌊L/4⌋ of L layers, Pre-LN in the others, and one norm
// at the end of the stack. With fewer than 4 layers none is Post-LN. In the authors' code the number of Post-LN layers
// is an option.
#include "plumb/nn/residual/tensor2tensor.h"

namespace plumb {
namespace {

const bool kMixLnRegistered = add_tensor2tensor_scheme(
    "mix-ln", "Mix-LN",
    "`post-ln` in the first ⌊L/4⌋ of L layers, none of fewer than 4, `pre-ln` in the others, and one norm at the end "
    "of each stack",
    "Li et al. 2024, arXiv 2412.13795", "n", [](const StackShape& shape, int64_t layer, int64_t) {
      return layer < shape.layers / 4 ? SubLayerProcessing{"", "dan"} : SubLayerProcessing{"n", "da"};
    });

}  // namespace
}  // namespace plumb
