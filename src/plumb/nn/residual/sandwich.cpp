// Sandwich, Ding et al. 2021 (CogView), arXiv 2105.13290, and Peri-LN, Kim et al. 2025, arXiv 2502.02732:
// x ← x + norm(dropout(f(norm(x)))), and one norm at the end of the stack.
#include "plumb/nn/residual/tensor2tensor.h"

namespace plumb {
namespace {

const bool registered =
    residual_schemes().add("sandwich", "x ← x + norm(dropout(f(norm(x)))), and one norm at the end of each stack",
                           "Sandwich: Ding et al. 2021, arXiv 2105.13290; Peri-LN: Kim et al. 2025, arXiv 2502.02732",
                           [](Parameters& parameters, const StackShape& shape) {
                             return make_tensor2tensor_scheme("n", "dna", parameters, shape);
                           });

}  // namespace
}  // namespace plumb
