// HybridNorm, Zhuo et al. 2025, arXiv 2503.04598: norms within attention, and Post-LN around the feed-forward
// sub-layer.
//   attention:     x ← x + dropout(f(x)), where f normalizes the queries, keys and values of each head
//   feed-forward:  y = norm(x);  x ← y + dropout(f(y))
// and one norm at the end of the stack, which is in the paper's code but not in its text. HybridNorm*, which the paper
// prefers, treats the first layer as Pre-LN, x ← x + dropout(f(norm(x))) in all of its sub-layers, and keeps the norms
// within attention. The last sub-layer of a layer is treated as feed-forward, also with model.parallel.
#include "plumb/nn/residual/tensor2tensor.h"

namespace plumb {
namespace {

/// Pre-LN in the first `pre_layers` layers.
ProcessingOf hybrid(int64_t pre_layers) {
  return [pre_layers](const StackShape& shape, int64_t layer, int64_t position) -> SubLayerProcessing {
    if (layer < pre_layers) return {"n", "da"};
    if (position + 1 < shape.sub_layers) return {"", "da"};
    return {.preprocess = "n", .postprocess = "da", .carries_read = true};
  };
}

constexpr Prescription kNormsWithinAttention{.qkv_norm = true};

const bool kHybridNormRegistered = add_tensor2tensor_scheme(
    "hybridnorm", "HybridNorm",
    "attention: x ← x + dropout(f(x)), with the norm over the queries, keys and values of each head; feed-forward: y = "
    "norm(x), x ← y + dropout(f(y)); and one norm at the end of each stack",
    "Zhuo et al. 2025, arXiv 2503.04598", "n", hybrid(0), kNormsWithinAttention);

const bool kHybridNormStarRegistered = add_tensor2tensor_scheme(
    "hybridnorm-star", "HybridNorm*",
    "HybridNorm*: `hybridnorm` with x ← x + dropout(f(norm(x))) in the first layer of each stack",
    "Zhuo et al. 2025, arXiv 2503.04598", "n", hybrid(1), kNormsWithinAttention);

}  // namespace
}  // namespace plumb
