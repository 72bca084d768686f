// Sub-layers in parallel, each with its own norm, as in GPT-NeoX: Black et al. 2022, arXiv 2204.06745. All sub-layers
// of a layer read the layer's input: x ← x + Σ dropout(f(norm(x))), and there is one norm at the end of the stack. For
// a single norm for both, as in GPT-J, use model.parallel, which makes them one sub-layer.
#include "plumb/nn/residual/tensor2tensor.h"

namespace plumb {
namespace {

const bool kParallelLnRegistered = add_tensor2tensor_scheme(
    "parallel-ln", "Parallel-LN",
    "x ← x + Σ dropout(f(norm(x))) over the sub-layers of a layer, which all read the layer's input, each through its "
    "own norm, and one norm at the end of each stack",
    "GPT-NeoX: Black et al. 2022, arXiv 2204.06745", "n", [](const StackShape&, int64_t, int64_t) {
      return SubLayerProcessing{.preprocess = "n", .postprocess = "da", .parallel = true};
    });

}  // namespace
}  // namespace plumb
