// LayerNorm scaling, Sun et al. 2025, "The Curse of Depth in Large Language Models", arXiv 2502.05795: Pre-LN whose
// norms are divided by the square root of the depth, x ← x + dropout(f(norm(x)/√l)) in layer l, from 1, and one norm,
// not divided, at the end of the stack. Not meant for initializations that already scale with depth, such as `gpt-2`.
#include <cmath>

#include "plumb/nn/residual/tensor2tensor.h"

namespace plumb {
namespace {

const bool kLnsRegistered = add_tensor2tensor_scheme(
    "lns", "LNS",
    "x ← x + dropout(f(norm(x)/√l)) in layer l = 1, 2, …, and one norm, not divided, at the end of each stack",
    "LayerNorm scaling: Sun et al. 2025, arXiv 2502.05795", "n", [](const StackShape&, int64_t layer, int64_t) {
      return SubLayerProcessing{
          .preprocess = "n", .postprocess = "da", .divisor = std::sqrt(static_cast<double>(layer + 1))};
    });

}  // namespace
}  // namespace plumb
